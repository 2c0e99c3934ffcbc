"""Freezes processes as a suspended host or a paused container freezes: all at once, without their noticing (cgroups; needs root)."""

import contextlib
import os
from pathlib import Path

import pytest

from polling import poll_until

VERSION_1 = Path("/sys/fs/cgroup/freezer")
VERSION_2 = Path("/sys/fs/cgroup")


def _group():
    """A new cgroup, the file that freezes it, and what to write there."""
    name = f"hvd-test-{os.getpid()}"
    if (VERSION_1 / "tasks").exists():
        return VERSION_1 / name, "freezer.state", ("FROZEN\n", "THAWED\n")
    return VERSION_2 / name, "cgroup.freeze", ("1\n", "0\n")


@contextlib.contextmanager
def frozen(pids):
    """Freezes the processes within the context; they can't notice that afterwards."""
    group, switch, (on, off) = _group()
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup to be had here: {error}")
    if not (group / switch).exists():
        group.rmdir()
        pytest.skip("no cgroup that freezes")
    try:
        for pid in pids:
            (group / "cgroup.procs").write_text(str(pid))
        (group / switch).write_text(on)
        poll_until(lambda: "FREEZING" not in (group / switch).read_text(), "the processes frozen")
        yield
    finally:
        (group / switch).write_text(off)
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):  # it has ended
                (group.parent / "cgroup.procs").write_text(pid)
        poll_until(lambda: not (group / "cgroup.procs").read_text(), "the cgroup empty")  # what ends goes by itself
        group.rmdir()
