"""The place of checkpoints: names, order, which world writes; and the folder, where a file gets whole."""

import atexit
import contextlib
import os
import re
import socket
import uuid
from typing import BinaryIO, Callable, NamedTuple, Union

from horovod import _ffi
from horovod.elastic import checkpoint_file, folder_lock
from horovod.elastic.checkpoint_file import Checkpoint, Damaged, Origin
from horovod.elastic.trees import Trees

# The second number is the world's; files of an older Horovod have none.
_NAME = re.compile(r"checkpoint-(\d+)(?:-w(\d+))?\.hvd")
_UNFINISHED = re.compile(r"\.checkpoint-\d+.*\.tmp")

# Stands for the job in a process that no agent has started.
_LONE_JOB = f"{socket.gethostname()}-{uuid.uuid4().hex}"


class Found(NamedTuple):
    """A checkpoint in the folder. Of two the greater is the newer one: what a newer world has
    written counts, however far an older one came that had been given up."""

    world: int
    commit: int
    name: str


def job() -> str:
    """What tells this job from others."""
    return _ffi.job_id() or _LONE_JOB


def owner_only(path: str, flags: int) -> int:
    """Opens files that nobody else may read, for open()."""
    return os.open(path, flags, 0o600)


class Place:
    """Checkpoints by their names, in a place that all workers of a job use. For one thread at a time.

    Each world has its own names, so no world replaces a checkpoint of another.
    """

    def __init__(self, path: str) -> None:
        self.path = path  # as messages have it
        self._before: dict[str, int] = {}  # for each job that this process was in

    # What a subclass has.

    def make(self) -> None:
        """Raises OSError."""
        raise NotImplementedError

    def take(self, job: str, waits: bool = False) -> bool:
        """Makes the place this job's; `waits`: for the processes of one that was killed to go. False if another process of
        the job has it, or nobody can have it. Raises folder_lock.InUse if another job has it."""
        raise NotImplementedError

    def release(self) -> None:
        """Gives the place up, at the end of the process."""

    def at_exit(self, call: Callable[[], None]) -> None:
        """Has `call` called at the end of the process, while it can still write here."""
        atexit.register(call)

    def path_of(self, name: str) -> str:
        raise NotImplementedError

    def read(self, trees: Trees, name: str) -> Checkpoint:
        """Raises OSError, Damaged."""
        raise NotImplementedError

    def remove_unfinished(self) -> None:
        """Removes what jobs that were killed have left. REQUIRES: no other job writes here."""

    def _names(self) -> list[str]:
        """Of all that is here. Raises OSError."""
        raise NotImplementedError

    def _read_origin(self, name: str) -> Origin:
        """Raises as :meth:`read`."""
        raise NotImplementedError

    def _put(self, name: str, write: Callable[[BinaryIO], None], confirm: Callable[[], None]) -> None:
        """Writes a checkpoint, atomically; see :meth:`put`."""
        raise NotImplementedError

    def _remove(self, name: str) -> None:
        """Does nothing if it can't be removed."""
        raise NotImplementedError

    # What all have.

    def found(self) -> list[Found]:
        """The checkpoints there are, newest first. Raises OSError."""
        matches = [match for match in map(_NAME.fullmatch, self._names()) if match]
        return sorted((Found(int(m[2] or 0), int(m[1]), m[0]) for m in matches), reverse=True)

    def origin_of(self, commit: int, epoch: int) -> Origin:
        """How to sign a commit in that world of this job. Raises OSError."""
        if job() not in self._before:
            self._before[job()] = self._newest_world_before(epoch)
        before = self._before[job()]
        return Origin(commit, before + epoch, job(), before)

    def _newest_world_before(self, epoch: int) -> int:
        """The newest world of the jobs before this one, whose newest world is `epoch`."""
        there = self.found()
        for found in there:
            try:
                newest = self._read_origin(found.name)
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
        """Writes a checkpoint by `write`, atomically. `confirm` is called last and raises if it must
        not appear. Raises what the two raise, and OSError."""
        name = f"checkpoint-{origin.commit}-w{origin.world}.hvd"
        self._put(name, write, confirm)
        return Found(origin.world, origin.commit, name)

    def remove_older_than(self, newest: Found, kept: int, damaged: set[str]) -> None:
        """Removes what is older than `newest`, up to `kept` checkpoints with it; those named `damaged`
        neither count nor go."""
        older = [item for item in self.found() if item <= newest and item.name not in damaged]
        for found in older[kept:]:
            self._remove(found.name)


class CheckpointFolder(Place):
    """Checkpoints in a folder of a file system: locked, synced to disk, renamed."""

    def __init__(self, path: Union[str, "os.PathLike[str]"]) -> None:
        super().__init__(os.path.abspath(path))

    def make(self) -> None:
        os.makedirs(self.path, exist_ok=True)

    def take(self, job: str, waits: bool = False) -> bool:
        return folder_lock.take(self.path, job, folder_lock.PATIENCE_S if waits else 0.0)

    def path_of(self, name: str) -> str:
        return os.path.join(self.path, name)

    def read(self, trees: Trees, name: str) -> Checkpoint:
        return checkpoint_file.read(trees, self.path_of(name))

    def remove_unfinished(self) -> None:
        for name in self._names():
            if _UNFINISHED.fullmatch(name):
                self._remove(name)

    def _names(self) -> list[str]:
        return os.listdir(self.path)

    def _read_origin(self, name: str) -> Origin:
        return checkpoint_file.read_origin(self.path_of(name))

    def _put(self, name: str, write: Callable[[BinaryIO], None], confirm: Callable[[], None]) -> None:
        writer = f"{os.getpid()}.{uuid.uuid4().hex[:8]}"  # perhaps on another host
        unfinished = f".{name}.{writer}.tmp"
        try:
            with open(self.path_of(unfinished), "wb", opener=owner_only) as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            confirm()
            os.replace(self.path_of(unfinished), self.path_of(name))
        except BaseException:
            self._remove(unfinished)
            raise
        self._sync()

    def _remove(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.remove(self.path_of(name))

    def _sync(self) -> None:
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
