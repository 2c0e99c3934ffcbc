"""Process sets: groups of ranks that run collectives among themselves, at the same time as others.

:mod:`horovod.common.process_set_recovery` brings the sets of an elastic job into its next world.
"""

import os
import threading
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, Callable, Optional, Union

from horovod import _ffi
from horovod.common import _process, ops
from horovod.common.exceptions import NOT_INITIALIZED

_DYNAMIC_VARIABLE = "HOROVOD_DYNAMIC_PROCESS_SETS"
_NOT_DYNAMIC = (
    "Process sets can be added and removed after hvd.init() only with "
    'hvd.init(process_sets="dynamic") or HOROVOD_DYNAMIC_PROCESS_SETS=1.'
)
_DUPLICATE = "Attempted to add a duplicate process set"

Rule = Callable[[int], Iterable[int]]


class ProcessSet:
    """A set of ranks that can run collectives of its own; pass it to :func:`hvd.init` or
    :func:`hvd.add_process_set`, then as `process_set` to any collective.

    In an elastic job a set comes into each next world by itself: one made of a list of ranks if all
    of its processes are still there, whatever their ranks are then; one made with a rule always,
    with the ranks that the rule gives for the new size.

    Args:
      ranks: global ranks, in any order.
      rule: instead of `ranks`, a function of the number of all ranks that returns them. It must
        give the same on all ranks.

    Attributes:
      process_set_id: 0 for the set of all ranks; None while not registered, or if it could not come
        into the present world: using it raises a ValueError then, which says why.
      ranks: sorted list of global ranks; None while a rule has not been asked yet, and in
        :data:`global_process_set` before init.
      mpi_comm: None.

    Raises ValueError for ranks that are no integers, and for MPI communicators.
    """

    process_set_id: Optional[int] = None
    mpi_comm: Any = None
    _declared = False  # by a process that is in no world yet: its ranks are provisional
    _gone: Optional[str] = None  # why it could not come into this world

    def __init__(self, ranks: Optional[Sequence[int]] = None, rule: Optional[Rule] = None) -> None:
        if (ranks is None) == (rule is None):
            raise ValueError("ProcessSet needs either a list of ranks or a rule.")
        self._rule = rule
        self._ranks = None if ranks is None else _checked(ranks)

    @property
    def ranks(self) -> Optional[list[int]]:
        """The global ranks, sorted; see the class."""
        return self._ranks

    def size(self) -> Optional[int]:
        """How many ranks the set has; None before it is registered."""
        return len(self._ranks) if self._is_there() and self._ranks is not None else None

    def rank(self) -> Optional[int]:
        """This process's number in the set; None before it is registered.

        Raises ValueError if it is not in the set.
        """
        if not self._is_there() or self._ranks is None:
            return None
        if not self.included():
            raise ValueError(f"Rank {_process.rank()} is not a member of process set {self._ranks}.")
        return self._ranks.index(_process.rank())

    def included(self) -> Optional[bool]:
        """Whether this process is in the set; None before it is registered."""
        return _process.rank() in self._ranks if self._is_there() and self._ranks is not None else None

    def _is_there(self) -> bool:
        if self._gone is not None:
            raise ValueError(self._gone)
        return self.process_set_id is not None or self._declared

    def _wanted(self, size: int) -> list[int]:
        """The ranks in a world of `size`. Raises what the rule raises, or ValueError."""
        if self._rule is not None:
            return _checked(self._rule(size))
        return self._ranks or []

    def _become(self, process_set_id: Optional[int], ranks: Optional[list[int]], gone: Optional[str] = None) -> None:
        self.process_set_id, self._ranks, self._gone = process_set_id, ranks, gone
        self._declared = False

    def __str__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks}, mpi_comm={self.mpi_comm})"

    __repr__ = __str__


def _checked(ranks: Any) -> list[int]:
    if isinstance(ranks, (str, bytes)) or not hasattr(ranks, "__iter__"):
        raise ValueError(
            f"ProcessSet needs a list of ranks, got {ranks!r}; MPI communicators are not supported, as "
            "this Horovod is built without MPI."
        )
    ranks = list(ranks)
    if not all(isinstance(rank, int) and abs(rank) < 2**31 for rank in ranks):
        raise ValueError(f"ProcessSet needs a list of ranks (int), got {ranks!r}")
    return sorted(ranks)


class _GlobalProcessSet(ProcessSet):
    def __init__(self) -> None:
        super().__init__([])
        self.process_set_id = 0

    @property
    def ranks(self) -> Optional[list[int]]:
        return list(range(_process.size())) if _process.is_initialized() else None

    def size(self) -> int:
        return _process.size()

    def rank(self) -> int:
        return _process.rank()

    def included(self) -> bool:
        return _process.is_initialized()


global_process_set = _GlobalProcessSet()


class Entry:
    """One set of the job, from its registration until it is removed.

    `process_set` is the object that users know it by; others that stand for the same are kept up to
    date as long as somebody holds them. `members` are the processes in it, in the order of `ranks`.
    """

    def __init__(self, process_set: ProcessSet) -> None:
        self.process_set = process_set
        self.members: list[tuple[int, int]] = []
        self.returned = False  # came into this world by itself, and was not added again yet
        self._others: weakref.WeakSet[ProcessSet] = weakref.WeakSet()

    def take(self, process_set: ProcessSet) -> None:
        """Makes `process_set` the object of this set."""
        if process_set is not self.process_set:
            self._others.add(self.process_set)
            self.process_set = process_set

    def is_of(self, process_set: ProcessSet) -> bool:
        return process_set is self.process_set or process_set in self._others

    def become(self, process_set_id: Optional[int], ranks: Optional[list[int]], gone: Optional[str] = None) -> None:
        """What all objects of the set say from now on; see :class:`ProcessSet`."""
        for process_set in (self.process_set, *self._others):
            process_set._become(process_set_id, ranks, gone)


class Registry:
    """What this process knows of the job's sets.

    Sets are numbered in the order of their registrations (removed ones count), the same on all
    ranks; `revision` grows with each registration and removal, so that of two processes the one
    with the greater knows more.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.entries: dict[int, Entry] = {}  # by number, in their order
        self.next_number = 0
        self.revision = 0
        self.declared: list[ProcessSet] = []  # by number, too; not yet registered, or they were

    def of_id(self, process_set_id: int) -> list[Entry]:
        entries = self.entries.values()
        return [entry for entry in entries if entry.process_set.process_set_id == process_set_id]

    def append(self, process_set: ProcessSet) -> Entry:
        entry = self.entries[self.next_number] = Entry(process_set)
        self.next_number += 1
        self.revision += 1
        return entry

    def number_of(self, process_set: ProcessSet) -> Optional[int]:
        for number, entry in self.entries.items():
            if entry.is_of(process_set):
                return number
        return None

    def remove(self, number: int) -> None:
        entry = self.entries.pop(number)
        entry.become(None, entry.process_set.ranks)
        self.revision += 1


registry = Registry()
_registering = threading.Lock()  # so that sets have the same numbers on all ranks


def forget() -> None:
    """Ends all registrations: the world has been left in good order."""
    for process_set in registry.declared:
        process_set._declared = False
    for entry in registry.entries.values():
        entry.become(None, entry.process_set.ranks)
    registry.clear()


def check(process_set: ProcessSet) -> int:
    """The id of `process_set`, for an operation on it; joins the world first if need be.

    Raises TypeError if it is not registered, ValueError if it is not in this world.
    """
    if process_set is global_process_set:
        return 0
    known(process_set)
    if process_set._declared:
        ops.check_ready()
        known(process_set)
    return process_set.process_set_id  # type: ignore[return-value]  # None for none that is known


def known(process_set: ProcessSet) -> None:
    """Raises as :func:`check`, but joins nothing: a process that is in no world yet may get ready
    with sets that it has declared."""
    if not isinstance(process_set, ProcessSet):
        raise TypeError(f"process_set={process_set!r} is no hvd.ProcessSet")
    if not process_set._is_there():
        raise TypeError(
            f"process_set={process_set} is not registered: pass it to hvd.init() or hvd.add_process_set() before."
        )


def takes_part(process_set: ProcessSet) -> bool:
    """Whether this process is in the set together with others. Raises as :func:`check`."""
    if process_set is global_process_set:
        return _process.size() > 1
    check(process_set)
    return bool(process_set.included()) and (process_set.size() or 0) > 1


def use(process_sets: Union[Sequence[ProcessSet], str, None]) -> list[ProcessSet]:
    """The sets that hvd.init was given. Raises ValueError."""
    if isinstance(process_sets, str):
        if process_sets.lower() != "dynamic":
            raise ValueError('process_sets is a list of hvd.ProcessSet, or "dynamic"')
        os.environ[_DYNAMIC_VARIABLE] = "1"
        return []
    sets = list(process_sets or [])
    if not all(isinstance(process_set, ProcessSet) for process_set in sets):
        raise ValueError("hvd.init(process_sets=...) needs a list of hvd.ProcessSet")
    return [process_set for process_set in sets if process_set is not global_process_set]


def declare(process_set: ProcessSet) -> None:
    """Notes a set that the world's members have registered already, or are about to."""
    # Ranks and size are provisional, too.
    process_set._become(None, process_set._wanted(_process.size()))
    process_set._declared = True
    registry.declared.append(process_set)


def register(process_set: ProcessSet) -> ProcessSet:
    """A registration, which all ranks take part in; returns the set.

    Raises ValueError on all ranks alike: the ranks ask for different things, or for a bad set.
    """
    ranks = process_set._wanted(_process.size())
    with _registering:
        process_set_id, is_new = _ffi.add_process_set(ranks)
        if is_new:
            entry = registry.append(process_set)
            entry.members = members_of(ranks)
        else:
            # A script may add the same sets again after each change of the world: it gets the existing ones.
            returned = [entry for entry in registry.of_id(process_set_id) if entry.returned]
            if not returned:
                raise ValueError(_DUPLICATE)
            entry = returned[0]
            entry.returned = False
            entry.take(process_set)
        entry.become(process_set_id, ranks)
    return process_set


def members_of(ranks: Iterable[int]) -> list[tuple[int, int]]:
    """The processes that have these ranks now."""
    return [_ffi.member(rank) for rank in ranks]


def _check_dynamic() -> None:
    if not _process.is_initialized():
        raise ValueError(NOT_INITIALIZED)
    _process.check_not_forked()
    if os.environ.get(_DYNAMIC_VARIABLE, "0") in ("", "0"):
        raise ValueError(_NOT_DYNAMIC)


def add_process_set(process_set: Union[ProcessSet, Sequence[int]]) -> ProcessSet:
    """Registers a set after init, which needs ``hvd.init(process_sets="dynamic")`` or
    HOROVOD_DYNAMIC_PROCESS_SETS=1. All ranks must call it, members or not; it blocks until all
    have, and the members are connected. Sets may overlap.

    In an elastic job a set of the same ranks may be added once more in each new world.

    Args:
      process_set: a :class:`ProcessSet`, or a list of global ranks.

    Returns the registered set.

    Raises:
      ValueError: on all ranks, whose other work goes on: they ask for different sets, there is such
        a set, or a rank does not exist. Or sets are not dynamic.
      HorovodInternalError: the world is broken, or members could not be connected.
    """
    _check_dynamic()
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    if process_set is global_process_set:
        raise ValueError(_DUPLICATE)
    if _process.is_deferred():
        declare(process_set)
        return process_set
    return register(process_set)


def remove_process_set(process_set: ProcessSet) -> bool:
    """Ends a set's registration. All ranks must call it; operations in flight on the set fail.

    Returns whether there was something to remove: False for the global set and sets that are not
    registered. The object can be added again.

    Raises ValueError if the ranks ask for different sets (on all of them), or if sets are not
    dynamic.
    """
    if process_set is global_process_set:
        return False
    _check_dynamic()
    if process_set._declared:
        process_set._become(None, process_set.ranks)
        return True
    with _registering:
        number = registry.number_of(process_set)
        if number is None:
            return False
        process_set_id = process_set.process_set_id
        # Rules may have given several sets the same ranks.
        if process_set_id and len(registry.of_id(process_set_id)) == 1:
            _ffi.remove_process_set(process_set_id)
        registry.remove(number)
    return True


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Returns when all ranks of the process set have called it.

    Raises HorovodInternalError if the world is broken; TypeError or ValueError for a process set that
    is not registered or not in this world.
    """
    ops.barrier(check(process_set))
