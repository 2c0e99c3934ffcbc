"""States that can be committed and restored."""

import copy
from collections.abc import Iterable
from typing import Any, Callable, Optional

from horovod import _ffi
from horovod.common.basics import rank
from horovod.common.class_names import with_article
from horovod.common.objects import broadcast_object
from horovod.elastic import checkpoint_options, commit_protocol, commit_store, commits
from horovod.elastic.commit_protocol import Commit, Snapshot, Snapshotter
from horovod.elastic.commit_store import Head, Placed
from horovod.elastic.corruption import Watch
from horovod.elastic.messages import say
from horovod.elastic.parts import check_plain


class State:
    """Everything that a training needs to continue in another world. Subclasses define how it is saved, restored and
    synchronized.

    A commit is an operation of all ranks, like a collective: all ranks that survive it keep it, or none does.

    Args:
      bcast_object: a function like hvd.broadcast_object, for subclasses that use it.
      get_rank: a function that returns the rank, for subclasses that use it.
    """

    _commit_under_way: Optional[Commit] = None  # or the sync, while it calls save() or sync()
    _begins_run = False  # no rank has a commit of this run yet
    _had_in_world = 0  # the newest world in which this process has had the state; 0: none
    _missed_world = False  # another world may have made commits since
    _loaded_commit = 0  # the id of the commit that the state was loaded from before a sync; 0: from none
    _last_updated_timestamp: float = 0
    _watch: Optional[Watch] = (
        None  # that compares this state's commits with those of the other ranks; None: nothing does
    )

    def __init__(
        self, bcast_object: Optional[Callable[..., Any]] = None, get_rank: Optional[Callable[[], int]] = None
    ) -> None:
        self._bcast_object: Optional[Callable[..., object]] = bcast_object
        self._rank: Optional[Callable[[], int]] = get_rank
        self._reset_callbacks: list[Callable[[], None]] = []
        self._hosts_updated = False

    def register_reset_callbacks(self, callbacks: Iterable[Callable[[], None]]) -> None:
        """Registers functions to be called after every change of the world, e.g. to adjust the learning rate to the size.

        Args:
          callbacks: functions without arguments.
        """
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """Prepares the state for a new world and calls the reset callbacks. The elastic loop calls it when a new world is up."""
        self._hosts_updated = False
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    @property
    def _host_messages(self) -> "_HostMessages":
        return _HostMessages(self)

    def on_hosts_updated(self, timestamp: float, update_res: int) -> None:
        """Records that the hosts of the job have changed; the next commit of this rank then raises HostsUpdatedInterrupt. Changes of
        the job's hosts need no call; a script that calls it does so on all ranks before the same commit.

        Args:
          timestamp: the time of the change in seconds. A change that is not later than the last one is ignored.
          update_res: not used.
        """
        if timestamp > self._last_updated_timestamp:
            self._last_updated_timestamp = timestamp
            self._hosts_updated = True

    def commit(self) -> None:
        """Saves the state. Call it on all ranks at a point that training can continue from, e.g. after a step.

        Raises:
          HostsUpdatedInterrupt: the state is saved, and the world is about to change. It is raised on all ranks at the same
            commit; after a call of :meth:`on_hosts_updated` by the script, only on the ranks that have called it.
          HorovodInternalError: the world is broken; the previous commit stays the last one.
        """
        commit_protocol.commit(self)

    def check_host_updates(self) -> None:
        """Checks on all ranks together whether the world is about to change, and commits only then, or where the script has called
        :meth:`on_hosts_updated`. Cheaper than :meth:`commit`. All ranks must call it.

        Raises:
          HostsUpdatedInterrupt: as for :meth:`commit`.
          HorovodInternalError: as for :meth:`commit`.
        """
        commit_protocol.commit_before_change(self)

    def save(self) -> None:
        """Copies the state to host memory. :meth:`commit` does so on all ranks."""
        raise NotImplementedError

    def restore(self) -> None:
        """Gives the state the values that it had at the last :meth:`save`."""
        raise NotImplementedError

    def sync(self) -> None:
        """Gives all ranks rank 0's current state, and saves it."""
        raise NotImplementedError

    def reset(self) -> None:
        """Is called after a change of the world, before the reset callbacks. Does nothing by default."""

    def _snapshotter(self) -> Optional[Snapshotter]:
        """Returns how the state is copied; None: only by :meth:`save`, which replaces the last save at once."""
        return None

    def _committed(self, number: int) -> None:
        """Is called after each commit, with its number."""
        if _ffi.store_is_there():
            kind = type(self).__name__
            commit_store.warn_once(f"{kind} is not derived from hvd.elastic.ObjectState")

    def _inherit(self, left: Optional[Placed]) -> None:
        """Takes over the commit of this run that the predecessor of this process left, if there is one."""

    def _begin_run(self) -> None:
        """Is called when a run of the script begins with this state."""

    def _look_for_later_runs(self) -> None:
        """Tells :data:`horovod.elastic.runs.runs` of later runs than this one if this state knows of them. Rank 0 calls it."""

    def _outlives_job(self) -> bool:
        """Returns whether another job may go on from this state."""
        return False

    # What a finished run has left, for processes that did not take part.

    def _final(self) -> bytes:
        """Returns the present values for :meth:`_be_given`; b"": they can't be handed on."""
        return b""

    def _be_given(self, final: bytes) -> None:
        """Gives the state the values that `final`, a result of :meth:`_final`, has. Raises if they do not fit."""

    def _named_parts(self) -> dict[str, object]:
        """Returns the values that are the script's own objects, by their names."""
        return {}


class _HostMessages:
    """What Horovod's own elastic scripts look at to wait for a change of the hosts: its queue of notifications."""

    def __init__(self, state: State) -> None:
        self._state = state

    def empty(self) -> bool:
        """Returns whether no change is known that interrupts the next commit. No communication."""
        return not (self._state._hosts_updated or _ffi.world_is_changing())


class ObjectState(State):
    """State of plain Python values: ``ObjectState(epoch=0, batch=0)`` has the attributes epoch and batch.

    Save and restore copy the values deeply. In an elastic job a commit is also kept in memory of the host's agent and
    outlives the worker: if all workers die, their successors begin with the newest commit that one of them finds. This holds
    for these attributes; anything else that a subclass saves ends with the process.

    Args:
      bcast_object: a function like hvd.broadcast_object, the default.
      get_rank: a function that returns the rank, hvd.rank by default.
      kwargs: the values, by their names.

    Raises:
      TypeError: a value is given without its name.

    Example:
      >>> from horovod.elastic.state import ObjectState
      >>> state = ObjectState(epoch=0)
      >>> state.commit()
      >>> state.epoch = 5
      >>> state.restore()
      >>> state.epoch
      0
    """

    def __init__(
        self,
        bcast_object: Callable[..., object] = broadcast_object,
        get_rank: Callable[[], int] = rank,
        **kwargs: Any,
    ) -> None:
        if not callable(bcast_object):
            kind = with_article(bcast_object)
            raise TypeError(
                f"bcast_object must be a function like hvd.broadcast_object, not {kind}; values are given to a state by their "
                "names, as in epoch=0"
            )
        checkpoint_options.warn_of_values(type(self).__name__, kwargs)
        super().__init__(bcast_object, get_rank)
        # Declared again: they can't be None here.
        self._bcast_object: Callable[..., Any] = bcast_object
        self._rank: Callable[[], int] = get_rank
        self._inherited = 0  # the commit with which this process began
        self._saved_state: dict[str, object] = dict(kwargs)
        for name, value in kwargs.items():
            setattr(self, name, value)
        self._find_parts()
        self._saved_state = self._deep_copy(self._saved_state)

    def save(self) -> None:
        self._accept(self._take(self._saves_commit()))

    def restore(self) -> None:
        if self._commit_under_way is not None:
            self._commit_under_way.snapshot = None
        self._set(copy.deepcopy(self._saved_state))

    def sync(self) -> None:
        self._say_where_it_goes_on()
        if self._saved_state:
            number = max(commits.newest_id(), self._loaded_commit)
            values, number = self._bcast_object((self._current(), number))
            self._set(values)
            self._goes_on_from(number)
        self.save()

    def _find_parts(self) -> None:
        """Raises ValueError if a value is, or holds, something of which a copy would be of no use."""
        for name, value in self._current().items():
            check_plain(value, f"{type(self).__name__}.{name}")

    def _current(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._saved_state}

    def _set(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            setattr(self, name, value)

    def _deep_copy(self, values: dict[str, object]) -> dict[str, object]:
        """Returns a copy of values, which later changes of them do not reach."""
        return copy.deepcopy(values)

    # Snapshots.

    def _snapshotter(self) -> Snapshotter:
        return Snapshotter(self._take, self._adopt, self._install)

    def _take(self, for_commit: bool) -> Snapshot:
        self._find_parts()
        current = self._current()
        placed = commit_store.place(self, current) if for_commit else None
        return Snapshot(self._deep_copy(current), placed=placed)

    def _adopt(self, left: Placed) -> Snapshot:
        values = left.values()
        self._check_names(values)
        if left.head().size > 0:
            raise ValueError("it has tensors")
        self._set(values)
        return Snapshot(left.values(), placed=left)

    def _install(self, snapshot: Snapshot) -> None:
        self._saved_state = snapshot.values

    def _saves_commit(self) -> bool:
        """Returns whether the next snapshot is that of a commit."""
        return self._commit_under_way is not None and self._commit_under_way.for_commit

    def _goes_on_from(self, commit: int) -> None:
        """Records which commit rank 0 has sent in a sync. The next snapshot is one of that commit, or of the first one of this run."""
        if self._commit_under_way is not None and commit > 0:
            self._commit_under_way.for_commit = True

    def _accept(self, snapshot: Snapshot) -> None:
        """Hands the snapshot to the commit or sync that is under way. Otherwise it is the last save at once, and no commit."""
        if self._commit_under_way is not None:
            self._commit_under_way.snapshot = snapshot
            return
        # The ranks' copies need not be of the same moment, for all that we know.
        commits.forget()
        self._install(snapshot)

    def _committed(self, number: int) -> None:
        pass

    # What the process before this one has left.

    def _inherit(self, left: Optional[Placed]) -> None:
        if left is None:
            return
        try:
            snapshot = self._adopt(left)
        except Exception as error:  # loading a foreign state may raise anything
            # A process that began anew instead could lead a world without the commit, and training would start over.
            reason = (str(error) or type(error).__name__).split("\n")[0]
            raise ValueError(
                f"commit {commits.number_of(left.number)} of this job does not fit the state that a new process builds: {reason}; "
                "build it with the names, shapes and parameter groups of the commit, or start another job"
            ) from error
        commits.inherit(left.number)
        self._inherited = left.number
        self._install(snapshot)

    def _begin_run(self) -> None:
        self._inherited = self._loaded_commit = 0

    def _final(self) -> bytes:
        return Head(commit_store.pickled(self._current())).packed()

    def _be_given(self, final: bytes) -> None:
        self._adopt(Placed(_ffi.address_of(final)))
        self.save()

    def _check_names(self, theirs: Iterable[str], mine: Iterable[str] = ()) -> None:
        """Raises ValueError if the names of a saved state differ from this state's, which are those of its values and `mine`."""
        different = set(theirs) ^ set(mine) ^ set(self._saved_state)
        if different:
            raise ValueError("only one of the two has {}".format(", ".join(sorted(different))))

    def _say_where_it_goes_on(self) -> None:
        if self._rank() == 0 and commits.newest_id() == self._inherited > self._loaded_commit:
            say(f"going on from commit {commits.newest()}, kept in memory")
