"""A limit of the kernel's on the memory of a command and all that it starts (cgroups; needs root)."""

import contextlib
import os
from pathlib import Path

import pytest

VERSION_1 = Path("/sys/fs/cgroup/memory")
VERSION_2 = Path("/sys/fs/cgroup")


@contextlib.contextmanager
def memory_limit(megabytes):
    """Returns the words to put before a command."""
    root, name = (VERSION_1, "memory.limit_in_bytes") if (VERSION_1 / "tasks").exists() else (VERSION_2, "memory.max")
    group = root / f"hvd-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / name).write_text(str(megabytes << 20))
    except OSError as error:
        with contextlib.suppress(OSError):
            group.rmdir()
        pytest.skip(f"no limit on memory to be had here: {error}")
    try:
        yield ["sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh"]
    finally:
        while (group / "cgroup.procs").read_text():  # what ends goes by itself
            pass
        group.rmdir()
