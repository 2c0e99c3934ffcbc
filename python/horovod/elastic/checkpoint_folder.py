"""The folder of checkpoints: names, order, which world writes, and how a file gets there whole."""

import contextlib
import os
import re
import socket
import uuid
from typing import BinaryIO, Callable, NamedTuple

from horovod import _ffi
from horovod.elastic import checkpoint_file
from horovod.elastic.checkpoint_file import Damaged, Origin

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


class CheckpointFolder:
    """Checkpoints in a folder that all workers of a job use. For one thread at a time.

    Each world has its own file names, so no world replaces a file of another.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self._before: dict[str, int] = {}  # for each job that this process was in

    def make(self) -> None:
        """Raises OSError."""
        os.makedirs(self.path, exist_ok=True)

    def path_of(self, name: str) -> str:
        return os.path.join(self.path, name)

    def found(self) -> list[Found]:
        """The checkpoints there are, newest first. Raises OSError."""
        matches = [match for match in map(_NAME.fullmatch, os.listdir(self.path)) if match]
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
                newest = checkpoint_file.read_origin(self.path_of(found.name))
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
        """Writes a file by `write`, atomically. `confirm` is called last and raises if the file must
        not appear. Raises what the two raise, and OSError."""
        name = f"checkpoint-{origin.commit}-w{origin.world}.hvd"
        writer = f"{os.getpid()}.{uuid.uuid4().hex[:8]}"  # perhaps on another host
        unfinished = self.path_of(f".{name}.{writer}.tmp")
        try:
            with open(unfinished, "wb", opener=owner_only) as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            confirm()
            os.replace(unfinished, self.path_of(name))
        except BaseException:
            self._remove(unfinished)
            raise
        self._sync()
        return Found(origin.world, origin.commit, name)

    def remove_older_than(self, newest: Found, kept: int, damaged: set[str]) -> None:
        """Removes what is older than `newest`, up to `kept` files with it; those named `damaged`
        neither count nor go."""
        older = [item for item in self.found() if item <= newest and item.name not in damaged]
        for found in older[kept:]:
            self._remove(self.path_of(found.name))

    def remove_unfinished(self) -> None:
        """Removes what jobs that were killed have left. REQUIRES: no other job writes here."""
        for name in os.listdir(self.path):
            if _UNFINISHED.fullmatch(name):
                self._remove(self.path_of(name))

    def _sync(self) -> None:
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    @staticmethod
    def _remove(path: str) -> None:
        with contextlib.suppress(OSError):
            os.remove(path)
