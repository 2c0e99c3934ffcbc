"""Process sets: groups of ranks that run collectives among themselves, concurrently with other sets.

:mod:`horovod.common.process_set_recovery` registers the sets of an elastic job again in its next world.
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
_ALL_RANKS = f"{_DUPLICATE}: it is the set of all ranks, hvd.global_process_set"

Rule = Callable[[int], Iterable[int]]


class ProcessSet:
    """A set of ranks with separate collectives. Pass it to :func:`hvd.init` or :func:`hvd.add_process_set`, then as
    `process_set` to any collective.

    In an elastic job a set is registered again in each new world. A set made from a list of ranks exists there if all its
    processes do, whatever their new ranks are. A set made from a rule always exists, with the ranks that the rule returns
    for the new size.

    Args:
      ranks_or_comm: ranks in the world, in any order.
      rule: instead of the ranks, a function that takes the size of the world and returns the ranks. It must return the same
        on all ranks.

    Attributes:
      process_set_id: 0 for the set of all ranks. None while the set is not registered, or if it could not be registered in
        the current world; its use then raises a ValueError that says why.
      ranks: the ranks in the world, sorted. None before a rule was evaluated, and for :data:`global_process_set` before
        init.
      mpi_comm: None.

    Raises:
      ValueError: the ranks are not integers, or are an MPI communicator; or not exactly one of `ranks_or_comm` and `rule` is
        given.

    Example:
      >>> from horovod.common.process_sets import ProcessSet
      >>> ProcessSet([2, 0]).ranks
      [0, 2]
      >>> even = ProcessSet(rule=lambda size: range(0, size, 2))
      >>> even.ranks is None
      True
    """

    process_set_id: Optional[int] = None
    mpi_comm: Any = None
    _declared = False  # passed to the init of a deferred process, whose ranks are provisional
    _gone: Optional[str] = None  # why it could not come into this world

    def __init__(self, ranks_or_comm: Optional[Sequence[int]] = None, rule: Optional[Rule] = None) -> None:
        if (ranks_or_comm is None) == (rule is None):
            raise ValueError("ProcessSet needs either a list of ranks or a rule.")
        self._rule = rule
        self._ranks = None if ranks_or_comm is None else _checked(ranks_or_comm)

    @property
    def ranks(self) -> Optional[list[int]]:
        """The ranks in the world, sorted; see the class."""
        return self._ranks

    def size(self) -> Optional[int]:
        """Returns the number of ranks in the set; None before the set is registered.

        Raises:
          ValueError: the set could not be registered in the current world.
        """
        return len(self._ranks) if self._is_there() and self._ranks is not None else None

    def rank(self) -> Optional[int]:
        """Returns this process's number in the set; None before the set is registered.

        Raises:
          ValueError: this process is not in the set, or the set could not be registered in the current world.
        """
        if not self._is_there() or self._ranks is None:
            return None
        if not self.included():
            raise ValueError(f"Rank {_process.rank()} is not a member of process set {self._ranks}.")
        return self._ranks.index(_process.rank())

    def included(self) -> Optional[bool]:
        """Returns whether this process has one of the set's ranks, also before the set is registered; None before a rule was
        evaluated.

        Raises:
          ValueError: Horovod is not initialized, or the set could not be registered in the current world.
        """
        self._is_there()
        return None if self._ranks is None else _process.rank() in self._ranks

    def _is_there(self) -> bool:
        if self._gone is not None:
            raise ValueError(self._gone)
        return self.process_set_id is not None or self._declared

    def _wanted(self, size: int) -> list[int]:
        """Returns the set's ranks in a world of `size`. Raises what the rule raises, or ValueError."""
        if self._rule is not None:
            return _checked(self._rule(size))
        return self._ranks or []

    def _become(self, process_set_id: Optional[int], ranks: Optional[list[int]], gone: Optional[str] = None) -> None:
        self.process_set_id, self._ranks, self._gone = process_set_id, ranks, gone
        self._declared = False

    def __str__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks}, mpi_comm={self.mpi_comm})"

    __repr__ = __str__


def _checked(ranks: object) -> list[int]:
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
        return list(range(_process.size())) if _process.is_initialized() else []

    def size(self) -> int:
        return _process.size()

    def rank(self) -> int:
        return _process.rank()

    def included(self) -> bool:
        return _process.is_initialized()


global_process_set = _GlobalProcessSet()


def rank_in(process_set: ProcessSet) -> int:
    """Returns this rank's number in a set.

    Args:
      process_set: a set that collectives can use.

    Raises:
      ValueError: this rank is not in the set.
    """
    rank = process_set.rank()
    assert rank is not None
    return rank


def size_of(process_set: ProcessSet) -> int:
    """Returns the number of ranks in a set.

    Args:
      process_set: a set that collectives can use.
    """
    size = process_set.size()
    assert size is not None
    return size


class Entry:
    """A registered process set of the job, from its registration to its removal.

    `process_set` is the object that the script uses. Other objects for the same set are kept up to date while something
    refers to them. `members` are the processes in the set, in the order of `ranks`.

    Args:
      process_set: the object that the script registered.
    """

    def __init__(self, process_set: ProcessSet) -> None:
        self.process_set = process_set
        self.members: list[tuple[int, int]] = []
        self.returned = False  # came into this world by itself: to add it again is no operation
        self._others: weakref.WeakSet[ProcessSet] = weakref.WeakSet()

    def take(self, process_set: ProcessSet) -> None:
        """Makes `process_set` the object that stands for this set.

        Args:
          process_set: the new object; the old one is kept up to date.
        """
        if process_set is not self.process_set:
            self._others.add(self.process_set)
            self.process_set = process_set

    def is_of(self, process_set: ProcessSet) -> bool:
        """Returns whether this object stands for the set.

        Args:
          process_set: the object.
        """
        return process_set is self.process_set or process_set in self._others

    def become(self, process_set_id: Optional[int], ranks: Optional[list[int]], gone: Optional[str] = None) -> None:
        """Gives all objects of the set these values; see :class:`ProcessSet`.

        Args:
          process_set_id: the set's id in the current world, or None.
          ranks: its ranks in the current world, or None.
          gone: why the set could not be registered in the current world, or None.
        """
        for process_set in (self.process_set, *self._others):
            process_set._become(process_set_id, ranks, gone)


class Registry:
    """All process sets that this process knows of.

    Sets are numbered in the order of their registrations, removed ones included, so the numbers are the same on all ranks.
    `revision` grows with each registration and removal: of two processes, the one with the greater revision is more up to
    date.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets all sets and restarts the numbering."""
        self.entries: dict[int, Entry] = {}  # by number, in their order
        self.next_number = 0
        self.revision = 0
        self.declared: list[ProcessSet] = []  # by number, too; not yet registered, or they were

    def of_id(self, process_set_id: int) -> list[Entry]:
        """Returns the entries with this id. There are several if rules gave several sets the same ranks.

        Args:
          process_set_id: the id in the current world.
        """
        entries = self.entries.values()
        return [entry for entry in entries if entry.process_set.process_set_id == process_set_id]

    def append(self, process_set: ProcessSet) -> Entry:
        """Adds a set under the next number and returns its entry.

        Args:
          process_set: the object that the script registers.
        """
        entry = self.entries[self.next_number] = Entry(process_set)
        self.next_number += 1
        self.revision += 1
        return entry

    def number_of(self, process_set: ProcessSet) -> Optional[int]:
        """Returns the number of the set that this object stands for; None if it is not registered.

        Args:
          process_set: the object.
        """
        for number, entry in self.entries.items():
            if entry.is_of(process_set):
                return number
        return None

    def remove(self, number: int) -> None:
        """Removes a set; its objects are unregistered.

        Args:
          number: the set's number.
        """
        entry = self.entries.pop(number)
        entry.become(None, entry.process_set.ranks)
        self.revision += 1


registry = Registry()
_registering = threading.Lock()  # so that sets have the same numbers on all ranks


def forget() -> None:
    """Ends all registrations, because this process has left the world cleanly."""
    for process_set in registry.declared:
        process_set._declared = False
    for entry in registry.entries.values():
        entry.become(None, entry.process_set.ranks)
    registry.clear()


def check(process_set: ProcessSet) -> int:
    """Returns the id of a process set, for an operation on it. Joins the world first if this process is deferred.

    Args:
      process_set: the set.

    Raises:
      TypeError: it is not registered.
      ValueError: it could not be registered in the current world.
    """
    if process_set is global_process_set:
        return 0
    known(process_set)
    if process_set._declared:
        ops.check_ready()
        known(process_set)
    return process_set.process_set_id  # type: ignore[return-value]  # None for none that is known


def known(process_set: ProcessSet) -> None:
    """Raises as :func:`check`, but does not join the world: a process that is in no world yet may prepare operations on sets
    that it has declared.

    Args:
      process_set: the set.
    """
    if not isinstance(process_set, ProcessSet):
        raise TypeError(f"process_set={process_set!r} is not a hvd.ProcessSet")
    if not process_set._is_there():
        raise TypeError(
            f"process_set={process_set} is not registered: pass it to hvd.init() or hvd.add_process_set() before."
        )


def takes_part(process_set: ProcessSet) -> bool:
    """Returns whether this process is in the set together with other processes. Raises as :func:`check`.

    Args:
      process_set: the set.
    """
    if process_set is global_process_set:
        return _process.size() > 1
    check(process_set)
    return bool(process_set.included()) and (process_set.size() or 0) > 1


def use(process_sets: Union[Sequence[ProcessSet], str, None]) -> list[ProcessSet]:
    """Returns the list of sets that was passed to hvd.init, without the global set. Turns dynamic sets on for "dynamic".

    Args:
      process_sets: a sequence of sets, "dynamic" or None.

    Raises:
      ValueError: it is anything else.
    """
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
    """Records a set that was passed to init in a deferred process. The world's members have registered it already.

    Args:
      process_set: the set.
    """
    # Ranks and size are provisional, too.
    process_set._become(None, process_set._wanted(_process.size()))
    process_set._declared = True
    registry.declared.append(process_set)


def register(process_set: ProcessSet) -> ProcessSet:
    """Registers a set; all ranks take part. Returns the set.

    Args:
      process_set: the set.

    Raises:
      ValueError: the ranks register different sets, or an invalid one; raised on all ranks.
    """
    ranks = process_set._wanted(_process.size())
    with _registering:
        # A script may add the same sets again after each change of the world: it gets the existing ones, without an operation,
        # because a newcomer adds them too, and the others may not.
        entry = next(
            (each for each in registry.entries.values() if each.returned and each.process_set.ranks == ranks), None
        )
        if entry is not None:
            process_set_id = entry.process_set.process_set_id
            entry.take(process_set)
        else:
            process_set_id, is_new = _ffi.add_process_set(ranks)
            if not is_new and not _may_be_of_all(process_set_id):
                raise ValueError(_DUPLICATE if process_set_id else _ALL_RANKS)
            entry = registry.append(process_set)
            entry.members = members_of(ranks)
        entry.become(process_set_id, ranks)
    return process_set


def _may_be_of_all(process_set_id: int) -> bool:
    """Returns whether a set with this id may be added though the id exists: in an elastic job a set that has become that of all
    ranks stays registered, so a new process must be able to add it as well.
    """
    return process_set_id == 0 and _process.is_elastic() and not registry.of_id(0)


def members_of(ranks: Iterable[int]) -> list[tuple[int, int]]:
    """Returns the processes that have these ranks in the current world.

    Args:
      ranks: ranks in the world.
    """
    return [_ffi.member(rank) for rank in ranks]


def _check_dynamic() -> None:
    if not _process.is_initialized():
        raise ValueError(NOT_INITIALIZED)
    _process.check_not_forked()
    if os.environ.get(_DYNAMIC_VARIABLE, "0") in ("", "0"):
        raise ValueError(_NOT_DYNAMIC)


def add_process_set(process_set: Union[ProcessSet, Sequence[int]]) -> ProcessSet:
    """Registers a set after init. Needs ``hvd.init(process_sets="dynamic")`` or HOROVOD_DYNAMIC_PROCESS_SETS=1.

    All ranks must call it, members or not; it blocks until all have called it and the members are connected. Sets may
    overlap. In an elastic job a set of the same ranks may be added once more in each new world. In a process that starts
    while others train it counts as a collective: the process joins the world.

    Args:
      process_set: a :class:`ProcessSet`, or a list of ranks in the world.

    Returns:
      The registered set.

    Raises:
      ValueError: the ranks add different sets, the set exists already, or a rank does not exist. It is raised on all ranks,
        and the world stays usable. Also if sets are not dynamic. In an elastic job the set of all ranks may be added once,
        because other sets can become that.
      HorovodInternalError: the world is broken, or members could not be connected.

    Example:
      >>> hvd.add_process_set([0])  # doctest: +SKIP
      ProcessSet(process_set_id=1, ranks=[0], mpi_comm=None)
    """
    _check_dynamic()
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    if process_set is global_process_set:
        raise ValueError(_DUPLICATE)
    ops.check_ready()
    return register(process_set)


def remove_process_set(process_set: ProcessSet) -> bool:
    """Ends a set's registration. All ranks must call it; operations in flight on the set fail. The object can be added again.

    Args:
      process_set: the set.

    Returns:
      Whether the set was registered. False also for the global set, which can't be removed.

    Raises:
      ValueError: the ranks remove different sets (raised on all ranks), or sets are not dynamic.

    Example:
      >>> hvd.remove_process_set(hvd.global_process_set)
      False
    """
    if process_set is global_process_set:
        return False
    if process_set._declared:
        _check_dynamic()
        ops.check_ready()
    with _registering:
        number = registry.number_of(process_set)
        if number is None:
            return False
        _check_dynamic()
        process_set_id = process_set.process_set_id
        # Rules may have given several sets the same ranks.
        if process_set_id and len(registry.of_id(process_set_id)) == 1:
            _ffi.remove_process_set(process_set_id)
        registry.remove(number)
    return True


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Blocks until all ranks of the process set have called it.

    Args:
      process_set: the ranks that take part.

    Raises:
      HorovodInternalError: the world is broken.
      TypeError: the process set is not registered.
      ValueError: the process set could not be registered in the current world.

    Example:
      >>> hvd.barrier()
    """
    ops.barrier(check(process_set))
