"""Runs a command within a time limit, and ends everything that it has started."""

import ctypes
import dataclasses
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import IO

_PR_SET_CHILD_SUBREAPER = 36


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a command ended.

    Attributes:
      code: its exit code, negative for a signal.
      timed_out: whether it was ended at its limit.
      seconds: the elapsed time.
    """

    code: int
    timed_out: bool
    seconds: float


def adopt_orphans() -> None:
    """Makes this process the parent of its orphaned descendants, so that run() finds them."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def _kill_descendants() -> None:
    """Kills all descendants of this process. The children of one that dies become our own: the loop ends when none is left."""
    while children := _children(os.getpid()):
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ChildProcessError, ProcessLookupError):
                pass  # it has been waited for already


def run(command: Sequence[str], seconds: float, environment: Mapping[str, str], output: IO[bytes]) -> Outcome:
    """Runs `command` for at most `seconds`. On return none of its processes is left, whether it ended by itself or not.

    Args:
      command: the program and its arguments.
      seconds: the limit. At the limit it gets SIGINT and 5 s to report, then SIGKILL.
      environment: its variables.
      output: where its output goes.
    """
    start = time.monotonic()
    process = subprocess.Popen(
        command, env=dict(environment), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
    )
    timed_out = False
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        timed_out = True
        process.send_signal(signal.SIGINT)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
    finally:
        if process.poll() is None:
            process.kill()
        code = process.wait()
        _kill_descendants()
    return Outcome(code, timed_out, time.monotonic() - start)
