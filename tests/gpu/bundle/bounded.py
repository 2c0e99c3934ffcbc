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
_SECONDS_TO_DIE = 20


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


def _parent(pid: str) -> int:
    """Returns the process's parent; 0 if the process has gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _children() -> list[int]:
    # Not from /proc/PID/task/PID/children, which kernels have only if they are built so.
    return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and _parent(pid) == os.getpid()]


def _kill_descendants() -> None:
    """Kills all descendants of this process. The children of one that dies become our own: the loop ends when none is left, or when the
    driver of a GPU does not let go of one for too long."""
    end = time.monotonic() + _SECONDS_TO_DIE
    while (children := _children()) and time.monotonic() < end:
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, os.WNOHANG)
            except (ChildProcessError, ProcessLookupError):
                pass  # it has been waited for already
        time.sleep(0.01)


def run(command: Sequence[str], seconds: float, environment: Mapping[str, str], output: IO[bytes]) -> Outcome:
    """Runs `command` for at most `seconds`. On return none of its processes is left, whether it ended by itself or not, but for those that
    the kernel can't end.

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
