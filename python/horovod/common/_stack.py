"""Writes this process's Python stack for its agent, which requests it when other ranks wait for this rank."""

import faulthandler
import os
from typing import Optional

from horovod import _ffi


def _is_free(signum: int) -> bool:
    """Returns whether neither Python nor native code of this process handles the signal."""
    with open("/proc/self/status") as status:
        masks = dict(line.split(":", 1) for line in status)
    taken = int(masks["SigCgt"], 16) | int(masks["SigIgn"], 16)
    return not taken >> (signum - 1) & 1


_shown: Optional[tuple[int, int, int]] = None  # where (descriptor and inode), and on which signal


def show_on_request() -> None:
    """Installs a handler that writes the main thread's stack when the agent sends the real-time signal that it has chosen,
    whatever the process is doing. A handler that the script has for that signal stays. A later call does the same for another
    agent, if there is one by then.
    """
    global _shown
    request = _ffi.stack_request()
    if request is None:
        return
    fd, signum = request
    try:
        place = (fd, os.fstat(fd).st_ino, signum)
        if place == _shown:
            return
        if _shown is not None:
            faulthandler.unregister(_shown[2])
        if _is_free(signum):
            faulthandler.register(signum, file=fd, all_threads=False, chain=False)
            os.write(fd, b"ready\n")
            _shown = place
    except (OSError, RuntimeError, KeyError, ValueError):
        pass  # it can be done without
