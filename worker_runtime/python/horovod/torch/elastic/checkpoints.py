"""Commits on disk, for a job whose workers may all be lost at once."""

import atexit
import os
import re
import sys
import threading
from typing import Any, Dict, List, Optional, Tuple

from horovod.torch.elastic import checkpoint_file
from horovod.torch.elastic.checkpoint_file import Checkpoint, Damaged

_NAME = re.compile(r"checkpoint-(\d+)\.hvd")
_UNFINISHED = re.compile(r"\.checkpoint-\d+\.hvd\.tmp")
_KEPT = 2
_MAX_WAIT_S = 60.0  # for a file that is being written when the process ends


def _warn(text: str) -> None:
    print("Horovod: " + text, file=sys.stderr, flush=True)


def _reason(error: BaseException) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return (text or type(error).__name__).splitlines()[0]


def _owner_only(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class Checkpoints:
    """Writes commits to files in a folder and finds the newest that is whole.

    Used by one thread; files are written by another, at most one at a time. What can't be written
    gives one line on stderr and is left.

    Raises OSError if the folder can't be made, ValueError if `every` is not a positive number.
    """

    def __init__(self, folder: str, every: int) -> None:
        if not isinstance(every, int) or isinstance(every, bool) or every < 1:
            raise ValueError("checkpoint_every must be a positive number, not {!r}".format(every))
        self._folder = os.path.abspath(folder)
        self._every = every
        self._newest = 0  # commit that was written, or tried
        self._thread: Optional[threading.Thread] = None
        self._trees: Tuple[Any, ...] = ()
        self._warned = ""
        os.makedirs(self._folder, exist_ok=True)

    def wants(self, commit: int) -> bool:
        """Whether it is time to write commit number `commit`, and no file is being written."""
        return commit // self._every > self._newest // self._every and not self._writing()

    def offer(self, commit: int, values: Dict[str, Any], trees: Dict[str, Any]) -> None:
        """Starts writing commit number `commit` if that is wanted. Neither `values` nor `trees` may
        change as long as they are :meth:`in_use`."""
        if not self.wants(commit):
            return
        if self._thread is None:
            atexit.register(self.wait)
        self._newest = commit
        self._trees = tuple(trees.values())
        self._thread = threading.Thread(
            target=self._write, args=(commit, values, trees), name="hvd-checkpoint", daemon=True
        )
        self._thread.start()

    def in_use(self) -> Tuple[Any, ...]:
        """The state dicts that are being written."""
        return self._trees if self._writing() else ()

    def wait(self) -> None:
        """Waits, for a minute at most, for a file that is being written."""
        if self._writing():
            self._thread.join(_MAX_WAIT_S)

    def load_newest(self, newer_than: int = 0, alone: bool = True) -> Optional[Checkpoint]:
        """The newest checkpoint that is whole and newer than that commit, or None. One line on
        stderr says which was taken, and which were skipped and why. `alone`: nobody is writing
        here, so what a job that was killed has left is removed."""
        if alone:
            self._remove_unfinished()
        for name, commit in self._found():
            if commit <= newer_than:
                return None
            path = os.path.join(self._folder, name)
            try:
                checkpoint = checkpoint_file.read(path)
            except (OSError, Damaged) as error:
                _warn("checkpoint {} is skipped: {}".format(path, _reason(error)))
                continue
            self._newest = commit
            _warn("going on from commit {}, checkpoint {}".format(commit, path))
            return checkpoint
        return None

    def _writing(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _names(self) -> List[str]:
        try:
            return os.listdir(self._folder)
        except OSError as error:
            _warn("checkpoints in {} can't be read: {}".format(self._folder, _reason(error)))
            return []

    def _found(self) -> List[Tuple[str, int]]:
        """Names and commits of the checkpoints there are, newest first."""
        matches = [match for match in map(_NAME.fullmatch, self._names()) if match]
        return sorted(((m[0], int(m[1])) for m in matches), key=lambda item: -item[1])

    def _remove_unfinished(self) -> None:
        """Removes what a job that was killed has left."""
        for name in self._names():
            if _UNFINISHED.fullmatch(name):
                self._remove(name)

    def _write(self, commit: int, values: Dict[str, Any], trees: Dict[str, Any]) -> None:
        name = "checkpoint-{}.hvd".format(commit)
        unfinished = "." + name + ".tmp"
        try:
            self._write_file(unfinished, commit, values, trees)
            os.replace(os.path.join(self._folder, unfinished), os.path.join(self._folder, name))
            self._sync_folder()
        except Exception as error:  # whatever it is, the training goes on
            self._remove(unfinished)
            reason = _reason(error)
            if reason != self._warned:
                path = os.path.join(self._folder, name)
                _warn("checkpoint {} can't be written: {}".format(path, reason))
            self._warned = reason
            return
        self._warned = ""
        self._remove_older_than(commit)

    def _write_file(
        self, name: str, commit: int, values: Dict[str, Any], trees: Dict[str, Any]
    ) -> None:
        with open(os.path.join(self._folder, name), "wb", opener=_owner_only) as file:
            checkpoint_file.write(file, commit, values, trees)
            file.flush()
            os.fsync(file.fileno())

    def _sync_folder(self) -> None:
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _remove_older_than(self, commit: int) -> None:
        # Newer ones were damaged when this job began: they are no reason to remove good ones.
        for name, number in [item for item in self._found() if item[1] <= commit][_KEPT:]:
            self._remove(name)

    def _remove(self, name: str) -> None:
        try:
            os.remove(os.path.join(self._folder, name))
        except OSError:
            pass
