"""The lock that gives a folder to one job at a time."""

import errno
import fcntl
import json
import os
import socket
import time
from typing import Any

from horovod.elastic.messages import say

_NAME = ".lock"
_PAUSE_S = 0.1
# For the processes of a job that was just killed to end.
PATIENCE_S = 10.0

_held: dict[str, int] = {}  # descriptors, by folder; locked until this process ends
_told: set[str] = set()


class InUse(Exception):
    """Another job has the folder; the message says which."""


def take(folder: str, job: str, patience: float = 0.0) -> bool:
    """Locks `folder` for this process and its job, until the process ends. Returns True on success; False if another process of
    the job has the lock, or if the folder can't be locked. A folder that can be written but not locked is reported on stderr,
    in one line.

    Raises InUse if another job still has it after `patience` seconds.
    """
    if folder in _held:
        return True
    path = os.path.join(folder, _NAME)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if os.access(folder, os.W_OK):  # otherwise writing reports it
            _tell(folder, error)
        return False
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = _owner(descriptor)
            if owner.get("job") == job:
                os.close(descriptor)
                return False
            if time.monotonic() >= deadline:
                os.close(descriptor)
                raise InUse(_text(folder, owner)) from None
            time.sleep(_PAUSE_S)
        except OSError as error:
            os.close(descriptor)
            _tell(folder, error)
            return False
        else:
            _sign(descriptor, job)
            _held[folder] = descriptor
            return True


def _owner(descriptor: int) -> dict[str, Any]:
    try:
        owner = json.loads(os.pread(descriptor, 4096, 0))
    except (OSError, ValueError):  # it is about to sign
        return {}
    return owner if isinstance(owner, dict) else {}


def _sign(descriptor: int, job: str) -> None:
    owner = {"job": job, "host": socket.gethostname(), "pid": os.getpid()}
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(owner).encode(), 0)
    except OSError:  # a full disk: the lock holds all the same
        pass


def _text(folder: str, owner: dict[str, Any]) -> str:
    who = "process {} on host {}".format(owner.get("pid", "?"), owner.get("host", "?"))
    return (
        f"{folder} is in use by another job ({who}): give each job its own checkpoint_dir. If there is "
        f"no such process any more, remove {os.path.join(folder, _NAME)}"
    )


def _tell(folder: str, error: OSError) -> None:
    if folder not in _told:
        _told.add(folder)
        why = f"{_NAME} is a link" if error.errno == errno.ELOOP else error.strerror or type(error).__name__
        say(f"{folder} can't be locked ({why}): see that no other job uses it")
