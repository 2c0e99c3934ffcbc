"""The protocol of a commit, which all ranks that survive it keep, or none does:

1. *begin*: the operation starts by which the ranks agree.
2. *stage*: meanwhile the state's save() takes a snapshot, into the store if there is one. The last save stays as it is.
3. *agree*: the operation has ended. Each rank has a snapshot, and knows whether the world is about to change. What all ranks should
   hold alike was compared meanwhile.
4. *seal*: the snapshot becomes the newest commit in the store, where the successor of this process finds it.
5. *publish*: the snapshot becomes the last save, and the job learns that this process can restore the commit. A rank that differs
   from a majority of the others neither seals nor publishes.
6. *interrupt*: if the world is about to change, all ranks leave the training at this commit.

A sync has the same steps up to 5; there a reduction of the ranks' newest commits takes the place of the operation.

The states of users that derive from hvd.elastic.State have no snapshots: their save() is called in step 5.
"""

import contextlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Callable, NamedTuple, Optional, Protocol

from horovod import _ffi
from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt
from horovod.elastic import commit_store, commits, corruption, outside_run
from horovod.elastic.commit_store import Placed
from horovod.elastic.pieces import Copy


class Snapshot(NamedTuple):
    """A copy of a state, or of a part of one."""

    values: dict[str, Any]  # plain ones
    trees: Mapping[str, Any] = MappingProxyType({})  # state dicts, by the names of their values
    placed: Optional[Placed] = None  # where it lies in the store
    copied: Optional[Copy] = None  # what can be compared, until it is sealed

    def seal(self, commit: int) -> None:
        """Makes it the newest commit in the store, with this id, if it lies there."""
        if self.placed is not None:
            commit_store.seal(self.placed, commit)


class Snapshotter(NamedTuple):
    """How a state, or a part of one, is copied and given back.

    Attributes:
      take: copies the present values. Its argument says whether the snapshot is that of a commit, which goes into the store.
      adopt: gives the state the values of a commit that a predecessor left in the store, and returns them as a snapshot. Raises
        anything if they do not fit.
      install: makes a snapshot the last save, which restore() gives back.
    """

    take: Callable[[bool], Snapshot]
    adopt: Callable[[Placed], Snapshot]
    install: Callable[[Snapshot], None]


class CommittedState(Protocol):
    """What the protocol needs of a state."""

    _commit_under_way: "Optional[Commit]"
    _hosts_updated: bool
    _loaded_commit: int
    _watch: Optional[corruption.Watch]

    def save(self) -> None: ...

    def sync(self) -> None: ...

    def _snapshotter(self) -> Optional[Snapshotter]: ...

    def _committed(self, number: int) -> None: ...


class Commit:
    """A commit or a sync of one state, while it is made. A local variable of the function that makes it.

    Attributes:
      for_commit: whether the snapshot is that of a commit, and not only a save.
      snapshot: what the state has saved, which is not the last save yet; None: nothing.
    """

    def __init__(self, state: CommittedState, for_commit: bool = True) -> None:
        self.for_commit = for_commit
        self.snapshot: Optional[Snapshot] = None
        self._state = state
        self._snapshotter = state._snapshotter()
        self._operation: Optional[int] = None
        self._watch = state._watch if corruption.policy() != corruption.OFF else None
        self._comparison: Optional[corruption.Comparison] = None
        self._is_world_changing = False

    def begin(self) -> None:
        """Starts the operation."""
        self._operation = commits.begin()
        _ffi.failpoint("worker.commit.begun")

    def stage(self) -> None:
        """Lets the state take its snapshot, if it can be taken before the ranks have agreed."""
        if self._snapshotter is not None:
            self.collect(self._state.save)
        _ffi.failpoint("worker.commit.staged")

    def compare(self) -> None:
        """Starts to compare the snapshot with those of the other ranks, which do the same."""
        if self._watch is not None:
            self._comparison = self._watch.begin(None if self.snapshot is None else self.snapshot.copied)

    def collect(self, save: Callable[[], None]) -> None:
        """Calls `save`, a method of the state that may be a user's own. What it saves is pending."""
        self._state._commit_under_way = self
        try:
            save()
        finally:
            self._state._commit_under_way = None

    def stage_late(self) -> None:
        """Takes the snapshot after the ranks have agreed. Compares it only if all of them take one, since the world is about to change."""
        if not self._is_world_changing:
            return self.stage()
        try:
            self.stage()
            self.compare()
        except BaseException:
            self.abstain()
            raise
        self.judge()

    def agree(self) -> None:
        """Waits for the operation. Raises HorovodInternalError if it failed."""
        try:
            self._is_world_changing = commits.end(self._operation)
        except HorovodInternalError:
            if self._comparison is not None:
                self._comparison.drop()
            raise
        _ffi.failpoint("worker.commit.agreed")

    def judge(self) -> None:
        """Ends the comparison: see :meth:`horovod.elastic.corruption.Comparison.end`."""
        if self._comparison is not None:
            self._comparison.end(commits.newest() + 1)

    def abandon(self) -> None:
        """Waits for the operations of a commit that this process can't make, so that the other ranks do not wait for them."""
        self.abstain()
        commits.abandon(self._operation)

    def abstain(self) -> None:
        """Takes part in the other ranks' comparison, without a snapshot."""
        if self._watch is None:
            return
        with contextlib.suppress(ValueError, HorovodInternalError):
            comparison = self._comparison or self._watch.begin(None)
            comparison.drop()

    def seal(self) -> None:
        """Gives the snapshot the id of the newest commit."""
        if self.snapshot is not None:
            self.snapshot.seal(commits.newest_id())

    def publish(self) -> None:
        """Makes the snapshot the last save, and lets the job know that this process can restore the newest commit."""
        if self._snapshotter is None:
            self._state.save()
        elif self.snapshot is not None:
            self._snapshotter.install(self.snapshot)
        commits.publish()

    def conclude(self) -> None:
        """Counts the commit on which the ranks have agreed, seals and publishes it."""
        commits.count()
        if self._watch is not None and self._watch.is_outlier:
            return commits.forget()
        self.seal()
        _ffi.failpoint("worker.commit.sealed")
        self.publish()
        _ffi.failpoint("worker.commit.published")
        self._state._committed(commits.newest())

    def is_interrupting(self) -> bool:
        """Returns whether the world is about to change."""
        return self._is_world_changing or self._state._hosts_updated

    def interrupt(self) -> None:
        """Raises HostsUpdatedInterrupt if the world is about to change."""
        if self.is_interrupting():
            _ffi.failpoint("worker.commit.interrupts")
            raise _interrupt_at(self._state)


def commit(state: CommittedState) -> None:
    """Commits the state: see :meth:`horovod.elastic.state.State.commit`."""
    outside_run.warn("state.commit()")
    commit = Commit(state)
    commit.begin()
    try:
        commit.stage()
        commit.compare()
    except BaseException:
        commit.abandon()
        raise
    commit.agree()
    commit.judge()
    commit.conclude()
    commit.interrupt()


def commit_before_change(state: CommittedState) -> None:
    """Commits the state if the world is about to change: see :meth:`horovod.elastic.state.State.check_host_updates`."""
    outside_run.warn("state.check_host_updates()")
    commit = Commit(state)
    commit.begin()
    commit.agree()
    if commit.is_interrupting():
        commit.stage_late()
        commit.conclude()
        commit.interrupt()


def synchronize(state: CommittedState, begins_later_run: bool = False) -> None:
    """Gives all ranks rank 0's state. The saves become the last ones when all ranks have received the whole state.

    Args:
      state: the state.
      begins_later_run: whether this is the start of a run that is not the script's first, which is a commit of its own.
    """
    commit = Commit(state, for_commit=begins_later_run)
    commit.collect(state.sync)
    _ffi.failpoint("worker.sync.received")
    commits.agree(state._loaded_commit)
    _ffi.failpoint("worker.sync.agreed")
    if state._watch is not None:
        state._watch.note_sync()
    if begins_later_run:
        commits.count()
    commit.seal()
    _ffi.failpoint("worker.sync.sealed")
    commit.publish()


def _interrupt_at(state: CommittedState) -> HostsUpdatedInterrupt:
    interrupt = HostsUpdatedInterrupt()
    interrupt._committed = state
    return interrupt


def is_interrupted_at_commit(state: CommittedState, interrupt: HostsUpdatedInterrupt) -> bool:
    """Returns whether a commit of the state has raised `interrupt`."""
    return interrupt._committed is state
