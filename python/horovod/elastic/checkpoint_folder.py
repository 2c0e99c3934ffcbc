"""The place of checkpoints: their names and order, the world that writes them, and the folder, in which a file appears
complete.
"""

import atexit
import contextlib
import errno
import os
import re
import shutil
import socket
import sys
import uuid
from typing import BinaryIO, Callable, NamedTuple, Union

from horovod import _ffi
from horovod.elastic import checkpoint_file, folder_lock, owners
from horovod.elastic.checkpoint_file import Checkpoint, Damaged, Origin
from horovod.elastic.trees import Trees

# The second number is the world's; files of an older Horovod have none.
_NAME = re.compile(r"checkpoint-(\d+)(?:-w(\d+))?\.hvd")
# By this process: the state of a run that has ended may still write when that of the next looks for files.
_being_written: set[str] = set()
_UNFINISHED = re.compile(r"\.checkpoint-\d+.*\.tmp")

# Errors of a disk that may have room again, and of a server that may answer again.
_PASSING = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN}

# Stands for the job in a process that no agent has started.
_LONE_JOB = f"{socket.gethostname()}-{uuid.uuid4().hex}"


class Found(NamedTuple):
    """A checkpoint in the folder. Of two, the greater one is newer: a file of a newer world is newer than one of an older world,
    which had been given up, whatever their commits.
    """

    world: int
    commit: int
    name: str


def job() -> str:
    """Returns the text that identifies this job."""
    return _ffi.job_id() or _LONE_JOB


def host() -> str:
    """Returns the name of this process's host in the job."""
    return os.environ.get("HOROVOD_HOSTNAME") or socket.gethostname()


def script() -> str:
    """Returns the name of the file of this process's script; "" if it has none."""
    name = os.path.basename(next(iter(sys.argv), ""))
    return "" if name.startswith("-") else name


def owner_only(path: str, flags: int) -> int:
    """An opener for open() of new files that only their owner may read."""
    return os.open(path, flags | os.O_EXCL | os.O_NOFOLLOW, 0o600)


class Place:
    """Checkpoints by name, in a place that all workers of a job use. Only one thread may use it at a time.

    Each world has its own names, so no world replaces a checkpoint of another.
    """

    def __init__(self, path: str) -> None:
        self.path = path  # for messages
        self._before: dict[str, int] = {}  # for each job that this process was in

    # Overridden by subclasses.

    def make(self) -> None:
        """Creates the place. Raises OSError, also if it is another user's in a folder that all users may write to."""
        raise NotImplementedError

    def open(self) -> None:
        """Prepares for reading. Creates nothing. Raises as :meth:`make`."""

    def take(self, job: str, waits: bool = False) -> bool:
        """Takes the place for this job. `waits`: it waits until the processes of a killed job are gone. Returns False if another
        process of the job has it, or if it can't be locked. Raises folder_lock.InUse if another job has it.
        """
        raise NotImplementedError

    def locked(self) -> str:
        """Returns where the lock of this process is, in words; "": it has none that processes on other hosts can see. Asks no file
        system.
        """
        return ""

    def shows_lock(self, job: str) -> bool:
        """Returns whether a lock of `job` can be seen here. True if that can't be known."""
        return True

    def release(self) -> None:
        """Releases the place, at the end of the process."""

    def at_exit(self, call: Callable[[], None]) -> None:
        """Registers `call` to be called at the end of the process, while it can still write here."""
        atexit.register(call)

    def path_of(self, name: str) -> str:
        raise NotImplementedError

    def read(self, trees: Trees, name: str) -> Checkpoint:
        """Returns a checkpoint. Raises OSError, Damaged."""
        raise NotImplementedError

    def read_origin(self, name: str) -> Origin:
        """Returns a checkpoint's origin. Raises as :meth:`read`."""
        raise NotImplementedError

    def remove_unfinished(self) -> None:
        """Removes unfinished files of killed jobs. REQUIRES: no other job writes here."""

    def keep_as(self, name: str, other: str) -> None:
        """Makes the checkpoint `name` appear as `other`, too, in the place of what was there, atomically. Raises OSError."""
        raise NotImplementedError

    def may_pass(self, error: Exception) -> bool:
        """Returns whether what has failed with `error` may succeed within seconds."""
        return isinstance(error, OSError) and error.errno in _PASSING

    def _names(self) -> list[str]:
        """Returns the names of all files here. Raises OSError."""
        raise NotImplementedError

    def _put(self, name: str, write: Callable[[BinaryIO], None], confirm: Callable[[], None]) -> None:
        """Writes a checkpoint, atomically; see :meth:`put`."""
        raise NotImplementedError

    def _remove(self, name: str) -> None:
        """Removes a file. Does nothing if it can't be removed."""
        raise NotImplementedError

    # Common to all subclasses.

    def found(self) -> list[Found]:
        """Returns the checkpoints, newest first. Raises OSError."""
        matches = [match for match in map(_NAME.fullmatch, self._names()) if match]
        return sorted((Found(int(m[2] or 0), int(m[1]), m[0]) for m in matches), reverse=True)

    def origin_of(self, commit: int, epoch: int) -> Origin:
        """Returns the origin to record for a commit in that world of this job. Raises OSError."""
        if job() not in self._before:
            self._before[job()] = self._newest_world_before(epoch)
        before = self._before[job()]
        return Origin(commit, before + epoch, job(), before, script=script())

    def _newest_world_before(self, epoch: int) -> int:
        """Returns the newest world of the jobs before this one, whose newest world is `epoch`."""
        there = self.found()
        for found in there:
            try:
                newest = self.read_origin(found.name)
            except (OSError, Damaged):
                continue
            if newest.job == job() and newest.world - newest.before <= epoch:
                return newest.before
            break
        return there[0].world if there else 0

    def put(
        self,
        origin: Origin,
        write: Callable[[BinaryIO], None],
        confirm: Callable[[], None],
    ) -> Found:
        """Writes a checkpoint by calling `write`, atomically. `confirm` is called last and raises if the checkpoint must not appear.
        Raises what the two raise, and OSError.
        """
        name = f"checkpoint-{origin.commit}-w{origin.world}.hvd"
        self._put(name, write, confirm)
        return Found(origin.world, origin.commit, name)

    def remove_older_than(self, newest: Found, kept: int, damaged: set[str]) -> None:
        """Removes checkpoints older than `newest` but keeps up to `kept`, `newest` included. Those named `damaged` are neither counted
        nor removed.
        """
        older = [item for item in self.found() if item <= newest and item.name not in damaged]
        for found in older[kept:]:
            self._remove(found.name)


class CheckpointFolder(Place):
    """Checkpoints in a folder of a file system: locked, synced to disk, and renamed when complete."""

    def __init__(self, path: Union[str, "os.PathLike[str]"]) -> None:
        super().__init__(os.path.abspath(path))

    def make(self) -> None:
        try:
            os.makedirs(self.path, exist_ok=True)
        except FileExistsError:
            what = "is a file" if os.path.exists(self.path) else "is a link to nothing"
            raise NotADirectoryError(f"checkpoint_dir {self.path} {what}: give a folder") from None
        except OSError as error:
            raise type(error)(f"checkpoint_dir {self.path} can't be made: {error.strerror}") from None
        self._check("checkpoint_dir ")
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise PermissionError(f"checkpoint_dir {self.path} can't be written to {self._why_not_written()}")

    def _why_not_written(self) -> str:
        is_read_only = os.statvfs(self.path).f_flag & os.ST_RDONLY
        return "on a read-only file system" if is_read_only else "by this user"

    def open(self) -> None:
        self._check()

    def _check(self, what: str = "") -> None:
        problem = owners.stranger(self.path)
        if problem is not None:
            raise PermissionError(f"{what}{self.path} can't be used: {problem}; give a folder of your own")

    def take(self, job: str, waits: bool = False) -> bool:
        return folder_lock.take(self.path, job, folder_lock.PATIENCE_S if waits else 0.0)

    def locked(self) -> str:
        return f"{self.path} on host {host()}" if folder_lock.is_signed(self.path) else ""

    def shows_lock(self, job: str) -> bool:
        return folder_lock.shows(self.path, job) is not False

    def path_of(self, name: str) -> str:
        return os.path.join(self.path, name)

    def read(self, trees: Trees, name: str) -> Checkpoint:
        return checkpoint_file.read(trees, self.path_of(name))

    def remove_unfinished(self) -> None:
        for name in self._names():
            if _UNFINISHED.fullmatch(name) and self.path_of(name) not in _being_written:
                self._remove(name)

    def keep_as(self, name: str, other: str) -> None:
        unfinished = self.path_of(f".{name}.{os.getpid()}.{uuid.uuid4().hex[:8]}.tmp")
        try:
            try:
                os.link(self.path_of(name), unfinished)
            except OSError:  # a file system without hard links
                with (
                    open(self.path_of(name), "rb", opener=owners.opened) as source,
                    open(unfinished, "wb", opener=owner_only) as target,
                ):
                    shutil.copyfileobj(source, target)
            os.replace(unfinished, self.path_of(other))
        except BaseException:
            self._remove(unfinished)
            raise
        self._sync()

    def _names(self) -> list[str]:
        return os.listdir(self.path)

    def read_origin(self, name: str) -> Origin:
        return checkpoint_file.read_origin(self.path_of(name))

    def _put(self, name: str, write: Callable[[BinaryIO], None], confirm: Callable[[], None]) -> None:
        writer = f"{os.getpid()}.{uuid.uuid4().hex[:8]}"  # a process of the job, perhaps on another host
        unfinished = f".{name}.{writer}.tmp"
        _being_written.add(self.path_of(unfinished))
        try:
            with open(self.path_of(unfinished), "wb", opener=owner_only) as file:
                _ffi.failpoint("worker.checkpoint.created", OSError)
                write(file)
                _ffi.failpoint("worker.checkpoint.written", OSError)
                file.flush()
                os.fsync(file.fileno())
            _ffi.failpoint("worker.checkpoint.synced", OSError)
            confirm()
            _ffi.failpoint("worker.checkpoint.confirmed", OSError)
            os.replace(self.path_of(unfinished), self.path_of(name))
            _ffi.failpoint("worker.checkpoint.renamed", OSError)
        except BaseException:
            self._remove(unfinished)
            raise
        finally:
            _being_written.discard(self.path_of(unfinished))
        self._sync()
        _ffi.failpoint("worker.checkpoint.durable")

    def _remove(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.remove(self.path_of(name))

    def _sync(self) -> None:
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
