"""Commits on disk, for a job that may lose all its workers at once."""

import contextlib
import errno
import functools
import os
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Callable, NamedTuple, Optional

from horovod import _ffi
from horovod.common._process import process
from horovod.common.class_names import with_article
from horovod.common.exceptions import UNAVAILABLE, HorovodInternalError
from horovod.elastic import checkpoint_file, checkpoint_folder, checkpoint_url, commits, folder_lock
from horovod.elastic.best_checkpoint import Best, best_file
from horovod.elastic.checkpoint_file import Checkpoint, Damaged, Unreadable
from horovod.elastic.checkpoint_folder import Found, Place
from horovod.elastic.messages import say
from horovod.elastic.runs import runs
from horovod.elastic.trees import Trees

# Gives the values and trees of a commit.
Contents = Callable[[], tuple[dict[str, Any], dict[str, Any]]]

_NAMED = "values are given to a state by their names, as in epoch=0"
_MAX_WAIT_S = 60.0  # limit for a file that is being written when the process ends
_LONG_S = 60.0  # after this time a slow write is reported in one line
_REMINDER_S = 600.0  # a failure that goes on is reported again after this time, and after 10, 100, ... writes
# How long to wait for the next world, or for an unreachable daemon.
_MAX_DOUBT_S = 60.0
_PAUSE_S = 1.0
# How long the last file of a process is tried again after an error that may pass.
_PATIENCE_S = 5.0
_PAUSE_BEFORE_RETRY_S = 0.25


# What an error says of one file: it is gone, no file, or on a bad part of the disk.
_OF_ONE_FILE = {errno.ENOENT, errno.EIO, errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.EISDIR, errno.ENOTDIR}


def _reason(error: BaseException) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return (text or type(error).__name__).splitlines()[0]


def _check_damaged(error: BaseException, path: str) -> None:
    """Raises OSError unless the error says that the file is bad. One that can't be read now, because this process has too many files open
    or the file server does not answer, may be good: without it the job would begin anew, and remove it in the end.
    """
    if isinstance(error, OSError) and error.errno is not None and error.errno not in _OF_ONE_FILE:
        raise OSError(f"checkpoint {path} can't be read: {_reason(error)}") from None


_newest_worlds: dict[str, int] = {}  # by job


def _world() -> int:
    """Returns the newest world that this process has been in, 1 before the first one. Between two worlds it is in none."""
    job = checkpoint_folder.job()
    _newest_worlds[job] = max(_newest_worlds.get(job, 1), _ffi.query("epoch"))
    return _newest_worlds[job]


class _Due(NamedTuple):
    """A commit that is to be written."""

    commit: int
    epoch: int  # the world that made it
    run: int
    past: Sequence[bytes]
    contents: Contents
    made: float  # time.monotonic()


def _due(commit: int, contents: Contents) -> _Due:
    return _Due(commit, _world(), runs.newest(), runs.past(), contents, time.monotonic())


class _Standing:
    """The newest checkpoint and the failures since, and their reports to the daemon and to the user."""

    def __init__(self, place: str) -> None:
        self._place = place  # of the newest checkpoint, or of all
        self._commit = 0  # the id of the newest one's commit
        self._made: Optional[float] = None  # when that was; None: unknown
        self._failures = 0  # in a row
        self.reason = ""  # of the last one
        self._told = 0.0  # when it was said
        self._text = ""
        self.is_known = False  # whether this process has written the newest one, or looked for it

    def has(self, commit: int, place: str, made: Optional[float]) -> None:
        """Records a complete checkpoint of the commit with this id."""
        self.is_known = True
        self._commit, self._place, self._made = commit, place, made
        self._failures, self.reason, self._text = 0, "", ""
        self.tell()

    def fails(self, number: int, where: str, reason: str, at_end: bool) -> None:
        """Records that commit `number` could not be written. Says so if the reason is new, and again from time to time; but not at
        the end of the process, which has a line of its own.
        """
        self._failures += 1
        now = time.monotonic()
        is_round = str(self._failures).strip("0") == "1"
        if reason == self.reason and not is_round and now - self._told < _REMINDER_S:
            return
        self.reason, self._told = reason, now
        in_a_row = f" ({self._failures} in a row)" if self._failures > 1 else ""
        self._text = f"checkpoint {number} in {where} can't be written: {reason}{in_a_row}"
        if not at_end:
            say(self._text)
        self.tell()

    def tell(self) -> None:
        age = -1.0 if self._made is None else time.monotonic() - self._made
        _ffi.note_checkpoints(self._commit, age, self._place, self._text)


class _Outdated(Exception):
    """The job may have continued without this process."""


_all: "weakref.WeakSet[Checkpoints]" = weakref.WeakSet()


def end_reads() -> None:
    """Waits until no commit is read any more to be written: the run that begins overwrites the memory of commits."""
    for checkpoints in list(_all):
        checkpoints.end_read()


class Checkpoints:
    """Writes commits to files in a folder, or below a URL, and finds the newest complete one.

    One thread uses it; another thread writes files, one at a time. A commit that is due while a file is being written is
    written at the end of the process, unless a newer one has followed. A file that can't be written, or that takes more than a
    minute, is reported in one line on stderr, and training continues. So is a last file that could not be written, at the end.
    The daemon gets the number of the newest checkpoint.

    `keep` is the number of files that are kept. `best`: the best checkpoint is kept, too, by a value of the state.

    Raises OSError if the folder can't be created, TypeError if it is not a path, ImportError if a package that the URL needs is not
    installed.
    """

    def __init__(self, trees: Trees, folder: str, every: int, keep: int = 2, best: Optional[Best] = None) -> None:
        if not isinstance(folder, (str, os.PathLike)):
            kind = with_article(folder)
            raise TypeError(f"checkpoint_dir must be the path of a folder or a URL, not {kind}; {_NAMED}")
        self._tensors = trees
        self._folder = checkpoint_url.place_of(folder)
        self._every, self._keep = every, keep
        self._best = best
        self._has_folder = False
        self._newest = 0  # the last commit that was written, or whose write failed
        self._thread: Optional[threading.Thread] = None
        self._ending = threading.Event()  # the process is ending: it joins no other world
        self._began = 0.0
        self._is_long = False  # and this was reported
        self._trees: tuple[object, ...] = ()
        self._postponed: Optional[_Due] = None
        self._begun: Optional[_Due] = None  # the last write; None: its contents are gone
        self._failed: Optional[_Due] = None  # the last write that failed, by an error that may pass
        self._watches_end = False  # of the process
        self._standing = _Standing(self._folder.path)
        self._damaged: set[str] = set()  # files that were skipped
        self._told: set[str] = set()
        self._has_read = threading.Event()  # all that the thread writes
        self._has_read.set()
        self._is_overwritten = False  # what it still reads
        _all.add(self)
        self._folder.make()

    @property
    def place(self) -> Place:
        return self._folder

    def wants(self, commit: int, contents: dict[str, Any]) -> bool:
        """Returns whether commit number `commit`, with these values and state dicts, is due and no file is being written. The best
        one so far is due; it waits for a file that is being written.
        """
        is_best = self._is_best(contents)  # first: it learns what an earlier process has kept
        if not is_best and not self._is_due(commit):
            return False
        if not self._writing():
            return True
        if not self._is_long and time.monotonic() - self._began > _LONG_S:
            self._is_long = True
            text = "checkpoint {} in {} has been under way for {:.0f} s; training continues"
            say(text.format(self._newest, self._folder.path, _LONG_S))
        return False

    def offer(self, commit: int, values: dict[str, Any], trees: dict[str, Any]) -> None:
        """Starts writing commit number `commit`, which it :meth:`wants`. `values` and `trees` must not change while they are
        :meth:`in_use`.
        """
        self._trees = tuple(trees.values())
        self._begin(_due(commit, lambda: (values, trees)))

    def _is_best(self, contents: dict[str, object]) -> bool:
        if self._best is None or not self._best.improves(contents, self._known_best):
            return False
        self.wait()
        return self._best.improves(contents, self._known_best)  # than the one that was being written, too

    def _known_best(self, run: int) -> dict[str, object]:
        """Returns the values of the best checkpoint of a run so far; none: there is none that can be read."""
        name = best_file(run)
        try:
            found = self._folder.read(self._tensors, name)
            return {**found.values, **found.trees}
        except FileNotFoundError:
            return {}
        except (OSError, Damaged, Unreadable) as error:
            say(f"checkpoint {self._folder.path_of(name)} is skipped: {_reason(error)}")
            return {}

    def postpone(self, commit: int, contents: Contents) -> None:
        """Schedules commit number `commit` to be written when the process ends, if it is due then or this process was drained, so that
        no process will continue from its commits in memory. `contents` returns its values and trees at that time.
        """
        self._watch_end()
        self._postponed = _due(commit, contents)

    def forget(self) -> None:
        """Drops the postponed commit, and one that could not be written, because their contents are gone."""
        self._postponed = self._begun = None

    def leave_to_another(self) -> None:
        """Is called after a commit that another process may write: what this one knows of the best one may be out of date."""
        if self._best is not None and not self._writing():
            self._best.forget()

    def in_use(self) -> tuple[Any, ...]:
        """Returns the state dicts that are being written."""
        return self._trees if self._writing() else ()

    def wait(self) -> None:
        """Waits, for a minute at most, for a file that is being written."""
        if self._thread is not None and self._writing():
            self._thread.join(_MAX_WAIT_S)
        if self._writing():
            text = "checkpoint {} in {} is given up: it was not written within {:.0f} s"
            say(text.format(self._newest, self._folder.path, _MAX_WAIT_S))

    def end_read(self) -> None:
        """Waits until the commit that is being written has been read; after a minute its file is given up."""
        self.forget()
        self._is_overwritten = not self._has_read.wait(_MAX_WAIT_S)

    def _begin(self, due: _Due, patience: float = 0.0) -> None:
        self._watch_end()
        self._begun = due
        self._has_read.clear()
        self._is_overwritten = False
        self._newest = due.commit
        self._began, self._is_long = time.monotonic(), False
        self._thread = threading.Thread(target=self._write, args=(due, patience), name="hvd-checkpoint")
        self._thread.daemon = True
        self._thread.start()

    def _watch_end(self) -> None:
        if not self._watches_end:
            self._folder.at_exit(self._finish)
        self._watches_end = True

    def _finish(self) -> None:
        """Writes the last commit and releases the folder, at the end of the process. Says if no file has that commit: an earlier
        line about it may be far above.
        """
        self._ending.set()
        self._write_last()
        if self._standing.reason and not self._writing():
            path = self._folder.path
            say(f"the last commit that was due, {self._newest}, is in no checkpoint in {path}: {self._standing.reason}")
        self._folder.release()

    def _write_last(self) -> None:
        self.wait()
        due = self._last_due()
        if due is not None and not self._writing():
            self._begin(due, _PATIENCE_S)
            self.wait()

    def _last_due(self) -> Optional[_Due]:
        """Returns the commit that is to be written at the end of the process, or None. REQUIRES: no file is being written."""
        due = self._postponed
        if due is not None and (self._is_due(due.commit) or (process.released and due.commit > self._newest)):
            return due
        return self._failed if self._failed is self._begun else None

    def load_newest(self, newer_than: int = 0, alone: bool = True) -> Optional[Checkpoint]:
        """Returns the newest complete checkpoint if it is one of this run and newer than the commit of that id, or None. Prints one
        line on stderr about the one that was loaded, and one about each that was skipped and why. `alone`: no other process of this
        job is writing here, so the folder is locked, and unfinished files of a killed job are removed.

        Raises ValueError if another job has the folder, or if a value in the checkpoint can't be unpickled; OSError if the folder
        or a file can't be read at present, checkpoint_url.Unreachable if a URL's store does not answer.
        """
        if alone:
            self._take_folder()
        for found in self._found():
            path = self._folder.path_of(found.name)
            try:
                origin = self._folder.read_origin(found.name)
                self._standing.has(self.id_of(origin), path, None)
                if not runs.is_in(origin.run) or self.id_of(origin) <= newer_than:
                    return None
                checkpoint = self._folder.read(self._tensors, found.name)
            except (OSError, Damaged) as error:
                _check_damaged(error, path)
                say(f"checkpoint {path} is skipped: {_reason(error)}")
                self._damaged.add(found.name)
                continue
            self._newest = found.commit
            say(f"going on from commit {found.commit}, checkpoint {path}")
            writer, own = checkpoint.origin.script, checkpoint_folder.script()
            if own and writer and writer != own:
                say(f"checkpoint {path} was written by another script: {writer}, not {own}")
            return checkpoint
        self._standing.has(0, self._folder.path, None)
        return None

    def past_of_later_run(self) -> Sequence[bytes]:
        """Returns what the newest complete checkpoint says of the runs before its own if that is later than this run; () otherwise.
        Raises as :meth:`load_newest`.
        """
        self._take_folder()
        for found in self._found():
            try:
                if self._folder.read_origin(found.name).run <= runs.number:
                    return ()
                return self._folder.read(self._tensors, found.name).past
            except (OSError, Damaged) as error:  # load_newest reports it
                _check_damaged(error, self._folder.path_of(found.name))
        return ()

    @staticmethod
    def id_of(origin: checkpoint_file.Origin) -> int:
        """Returns the id of the commit in a file. One of an earlier job is older than every commit of this job; and so is one of a
        world that the job has not had: its journal was set back, e.g. by a restored backup.
        """
        world = origin.world - origin.before
        ours = origin.job == checkpoint_folder.job() and world <= _world()
        return commits.id_of(world if ours else 0, origin.commit)

    def _take_folder(self) -> None:
        self._watch_end()
        try:
            self._have_folder(waits=True)
        except folder_lock.InUse as error:
            raise ValueError(f"checkpoint_dir {error}") from None
        except OSError:  # can't be read, which load_newest reports
            pass

    def _have_folder(self, waits: bool = False) -> None:
        """Takes the folder if no other process of this job has it. Removes what processes that were killed have left unfinished: it
        would take the room of one more file. Raises as :meth:`Place.take`, and OSError.
        """
        if self._folder.take(checkpoint_folder.job(), waits) and not self._has_folder:
            self._has_folder = True
            self._folder.remove_unfinished()

    def _is_due(self, commit: int) -> bool:
        return commit // self._every > self._newest // self._every

    def _writing(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _found(self) -> list[Found]:
        """Returns the checkpoints, newest first. Raises OSError if the folder can't be read: a job that began anew would remove what
        is there once it can be read again.
        """
        try:
            return self._folder.found()
        except FileNotFoundError:  # removed since it was made
            return []
        except OSError as error:
            raise OSError(f"checkpoint_dir {self._folder.path} can't be read: {_reason(error)}") from None

    def _write(self, due: _Due, patience: float) -> None:
        try:
            written, contents = self._put_patiently(due, time.monotonic() + patience)
        except Exception as error:  # training continues after any error
            if isinstance(error, _Outdated) and self._ending.is_set():
                return  # another process has the newest commit by now
            if self._folder.may_pass(error):
                self._failed = due
            self._learn_newest()
            self._standing.fails(due.commit, self._folder.path, _reason(error), at_end=self._ending.is_set())
        else:
            self._standing.has(commits.id_of(due.epoch, due.commit), self._folder.path_of(written.name), due.made)
            _ffi.failpoint("worker.checkpoint.noted")
            self._follow(written, due.run, contents)
        finally:
            self._has_read.set()

    def _put_patiently(self, due: _Due, deadline: float) -> tuple[Found, dict[str, Any]]:
        """Writes a commit; tries again until the deadline after an error that may pass. Returns the file and what is in it."""
        while True:
            try:
                return self._put(due)
            except Exception as error:
                if not self._folder.may_pass(error) or time.monotonic() + _PAUSE_BEFORE_RETRY_S > deadline:
                    raise
            time.sleep(_PAUSE_BEFORE_RETRY_S)

    def _put(self, due: _Due) -> tuple[Found, dict[str, Any]]:
        values, state_dicts = due.contents()
        self._have_folder()
        origin = self._folder.origin_of(due.commit, due.epoch)._replace(run=due.run)
        write = functools.partial(
            checkpoint_file.write,
            self._tensors,
            origin=origin,
            values=values,
            state_dicts=state_dicts,
            past=due.past,
        )
        return self._folder.put(origin, self._noting(write), self._confirm), {**values, **state_dicts}

    def _follow(self, written: Found, run: int, contents: dict[str, object]) -> None:
        """Does what a new checkpoint entails. The checkpoint is complete even if this fails, and the next one tries again."""
        if self._best is not None and self._best.is_best(run, contents):
            name = best_file(run)
            with self._told_once(f"{self._folder.path_of(name)} can't be replaced"):
                self._folder.keep_as(written.name, name)
                self._best.note(run, contents)
        with self._told_once(f"older checkpoints in {self._folder.path} can't be removed"):
            self._folder.remove_older_than(written, self._keep, self._damaged)

    @contextlib.contextmanager
    def _told_once(self, what: str) -> Iterator[None]:
        """Returns a context that turns an error into one line on stderr, which is not repeated."""
        try:
            yield
        except Exception as error:  # training continues after any error
            line = f"{what}: {_reason(error)}"
            if line not in self._told:
                self._told.add(line)
                say(line)

    def _learn_newest(self) -> None:
        """Records the newest checkpoint, which another process of this job may have written."""
        if self._standing.is_known:
            return
        with contextlib.suppress(OSError, checkpoint_url.Unreachable):
            for found in self._folder.found():
                with contextlib.suppress(Damaged):
                    origin = self._folder.read_origin(found.name)
                    return self._standing.has(self.id_of(origin), self._folder.path_of(found.name), None)

    def _noting(self, write: Callable[[BinaryIO], None]) -> Callable[[BinaryIO], None]:
        def write_and_note(file: BinaryIO) -> None:
            if _ffi.disk_is_full():
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            write(file)
            self._has_read.set()

        return write_and_note

    def _confirm(self) -> None:
        """Verifies that the job has not continued without this process, which may have been paused or disconnected. Waits for a world
        that is about to form, and for a daemon that is unreachable. Raises _Outdated when that has taken too long, or no world can
        form.
        """
        if self._is_overwritten:
            raise _Outdated(f"it was not written within {_MAX_WAIT_S:.0f} s, and the next run of the script has begun")
        deadline = time.monotonic() + _MAX_DOUBT_S
        while True:
            try:
                return _ffi.confirm_world()
            except HorovodInternalError as error:
                is_last = self._ending.is_set() and error.code != UNAVAILABLE
                if is_last or time.monotonic() >= deadline:
                    raise _Outdated(f"the job may be in a newer world: {error}") from None
                pause = time.sleep if self._ending.is_set() else self._ending.wait
                pause(_PAUSE_S)
