"""The lock that gives a folder to one job at a time."""

import errno
import fcntl
import json
import os
import socket
import threading
import time
from typing import Any, Optional

from horovod.common._texts import one_line
from horovod.elastic import owners
from horovod.elastic.messages import say

_NAME = ".lock"
_LONGEST_NAME = 255  # of a host
_PAUSE_S = 0.1
# For the processes of a job that was just killed to end.
PATIENCE_S = 10.0

_guards: dict[str, threading.Lock] = {}  # by folder
_held: dict[str, int] = {}  # descriptors, by folder; locked until this process ends
_signed: set[int] = set()  # those of files that name the job
_told: set[str] = set()


class InUse(Exception):
    """Another job has the folder; the message says which."""


def take(folder: str, job: str, patience: float = 0.0) -> bool:
    """Locks `folder` for this process and its job, until the process ends. Returns True on success; False if another process of
    the job has the lock, or if the folder can't be locked. A folder that can be written but not locked is reported on stderr,
    in one line. The lock of another user is not respected in a folder that all users may write to.

    Raises InUse if another job still has it after `patience` seconds. Thread-safe.
    """
    with _guards.setdefault(folder, threading.Lock()):
        return _take(folder, job, patience)


def _take(folder: str, job: str, patience: float) -> bool:
    path = os.path.join(folder, _NAME)
    if _still_has(folder, path):
        return True
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if os.access(folder, os.W_OK):  # otherwise writing reports it
            _tell(folder, _reason(error))
        return False
    problem = owners.stranger(path, os.fstat(descriptor).st_uid)
    if problem is not None:  # it would keep the folder from its user for as long as the stranger likes
        os.close(descriptor)
        _tell(folder, f"{_NAME}: {problem}")
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
            _tell(folder, _reason(error))
            return False
        else:
            _sign(descriptor, job)
            _held[folder] = descriptor
            return True


def _still_has(folder: str, path: str) -> bool:
    """Returns whether this process has the lock of `folder`. The lock of a file that was removed, with its folder or alone, gives
    nothing any more: it is released.
    """
    if folder not in _held:
        return False
    try:
        now = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError:  # nothing is known, e.g. while a server does not answer
        return True
    else:
        if os.path.samestat(now, os.fstat(_held[folder])):
            return True
    _signed.discard(_held[folder])
    os.close(_held.pop(folder))
    return False


def is_signed(folder: str) -> bool:
    """Returns whether this process has locked `folder` in a file that names its job. Asks no file system."""
    return _held.get(folder) in _signed


def shows(folder: str, job: str) -> Optional[bool]:
    """Returns whether a lock of `job` can be seen in `folder`; None: that can't be known at present."""
    try:
        # A client of NFS asks the server for a folder's entries again after the folder was opened.
        os.close(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(os.path.join(folder, _NAME), flags)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return None
    try:
        owner = _owner(descriptor)
    finally:
        os.close(descriptor)
    return owner["job"] == job if "job" in owner else None


def _owner(descriptor: int) -> dict[str, object]:
    try:
        owner = json.loads(os.pread(descriptor, 4096, 0))
    except (OSError, ValueError):  # it is about to sign
        return {}
    return owner if isinstance(owner, dict) else {}


def _sign(descriptor: int, job: str) -> None:
    _signed.discard(descriptor)
    owner = {"job": job, "host": socket.gethostname(), "pid": os.getpid()}
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(owner).encode(), 0)
        os.fsync(descriptor)  # else other hosts of a file server may see it much later: the file stays open
        _signed.add(descriptor)
    except OSError:  # a full disk: the lock holds all the same
        pass


def _text(folder: str, owner: dict[str, object]) -> str:
    return (
        f"{folder} is in use by another job ({holder(owner)}): give each job its own checkpoint_dir. If there is "
        f"no such process any more, remove {os.path.join(folder, _NAME)}"
    )


def holder(owner: dict[str, Any]) -> str:
    """Returns who wrote that into a lock or a claim, in words. Others may have written anything."""
    pid, host = owner.get("pid"), owner.get("host")
    return "process {} on host {}".format(
        pid if isinstance(pid, int) else "?", one_line(host[:_LONGEST_NAME]) if isinstance(host, str) else "?"
    )


def _reason(error: OSError) -> str:
    return f"{_NAME} is a link" if error.errno == errno.ELOOP else error.strerror or type(error).__name__


def _tell(folder: str, why: str) -> None:
    if folder not in _told:
        _told.add(folder)
        say(f"{folder} can't be locked ({why}): see that no other job uses it")
