"""Registration of the process sets of an elastic job in its next world.

Every process that enters a world (by reset, as a new member, or late in its init) takes part in the same two small
operations, before anything else. First a reduction elects the leader: the rank whose registry has the greatest revision.
Then the leader broadcasts a snapshot of its registry. All ranks apply it and register these sets in their order. A new
member, which has only declared its sets so far, matches them by their numbers.
"""

import json
from typing import Any, Optional

from horovod import _ffi
from horovod.common import _process, ops
from horovod.common.process_sets import (
    Entry,
    ProcessSet,
    declare,
    members_of,
    register,
    registry,
)

_RANK_BITS = 24
_ALL_RANKS = (1 << _RANK_BITS) - 1
_NOT_MADE = "This process set could not come into the present world: "


def enter_first(process_sets: list[ProcessSet]) -> None:
    """Registers the sets that were passed to init in the world that this process has joined.

    Raises ValueError if they are invalid, HorovodInternalError if the world is broken.
    """
    for process_set in process_sets:
        declare(process_set)
    if _process.is_deferred():
        return
    if _is_shared_by_newcomers():
        enter()
        return
    for process_set in process_sets:
        register(process_set)


def enter() -> None:
    """Registers the job's process sets in the world that this process has just joined.

    Raises HorovodInternalError if the world breaks meanwhile.
    """
    key = _versioned_rank()
    leader = _process.rank()
    if _process.size() > 1 and _is_shared_by_newcomers():
        key = ops.max_over_ranks(key)
        leader = _ALL_RANKS - (key & _ALL_RANKS)
    if key == 0:
        return
    snapshot = json.dumps(_snapshot()).encode() if leader == _process.rank() else b""
    if _process.size() > 1 and _is_shared_by_newcomers():
        snapshot = ops.bytes_of_one(snapshot)
    for entry, ranks in _apply(json.loads(snapshot)):
        _make(entry, ranks)


def _is_shared_by_newcomers() -> bool:
    """Returns whether members of this world may have different registries. The same on all members."""
    return _process.is_elastic() and _ffi.query("epoch") > 1


def _versioned_rank() -> int:
    """Returns the registry's revision and, in the low bits, this rank, as one number: greater on the rank with the newer
    registry, then on the lower rank. 0 if there are no sets.
    """
    if not registry.revision and not registry.declared:
        return 0
    return (registry.revision + 1) << _RANK_BITS | (_ALL_RANKS - _process.rank())


def _snapshot() -> object:
    """Returns this process's registry: the revision, the next number, and for each set its number, its ranks in this world
    (null: none) and why it has none.
    """
    ranks_now = {member: rank for rank, member in enumerate(members_of(range(_process.size())))}
    sets = []
    for number, entry in registry.entries.items():
        sets.append((number, *_ranks_of(entry, ranks_now)))
    # What init was given, if the world broke before it was through.
    for number in range(registry.next_number, len(registry.declared)):
        sets.append((number, *_ranks_by_rule(registry.declared[number])))
    return [registry.revision, max(registry.next_number, len(registry.declared)), sets]


def _ranks_of(entry: Entry, ranks_now: dict[tuple[int, int], int]) -> tuple[Optional[list[int]], str]:
    process_set = entry.process_set
    if process_set._rule is not None:
        return _ranks_by_rule(process_set)
    lost = [rank for rank, member in zip(process_set.ranks or (), entry.members) if member not in ranks_now]
    if process_set._gone is not None:
        return None, process_set._gone
    if lost:
        return None, (
            f"Process set {process_set.ranks} is gone: the process that was rank {lost[0]} is not there any more. "
            "A set made with hvd.ProcessSet(rule=...) gets its ranks from the rule in every world."
        )
    return sorted(ranks_now[member] for member in entry.members), ""


def _ranks_by_rule(process_set: ProcessSet) -> tuple[Optional[list[int]], str]:
    try:
        return process_set._wanted(_process.size()), ""
    except Exception as error:  # from the user's rule; reported on all ranks
        return None, f"{_NOT_MADE}its rule fails for a world of {_process.size()}: {error!r}"


def _apply(snapshot: Any) -> list[tuple[Entry, list[int]]]:
    """Replaces this process's registry by the snapshot, without communication. Returns the sets to be registered."""
    revision, next_number, sets = snapshot
    before = dict(registry.entries)
    registry.entries.clear()
    # A process that has applied a snapshot is ahead of one that has not.
    registry.revision, registry.next_number = revision + 1, next_number
    to_make = []
    for number, ranks, gone in sets:
        entry = before.pop(number, None) or Entry(_declared(number))
        registry.entries[number] = entry
        entry.returned = ranks is not None
        entry.become(None, entry.process_set.ranks if ranks is None else ranks, gone or None)
        if ranks is not None:
            to_make.append((entry, ranks))
    for entry in before.values():  # registered or not yet removed here only, when the world broke
        entry.become(None, entry.process_set.ranks)
    for process_set in registry.declared:
        if process_set._declared:
            process_set._become(None, process_set.ranks)
    return to_make


def _declared(number: int) -> ProcessSet:
    """Returns the set that this process has declared under that number, or else an object that stands for it."""
    declared = registry.declared
    return declared[number] if number < len(declared) else ProcessSet(())


def _make(entry: Entry, ranks: list[int]) -> None:
    try:
        # Two rules may give the same ranks, even all of them: then the sets share one.
        process_set_id, _ = _ffi.add_process_set(ranks)
    except ValueError as error:
        entry.returned = False
        entry.become(None, ranks, _NOT_MADE + str(error))
        return
    entry.members = members_of(ranks)
    entry.become(process_set_id, ranks)


_process.on_later_world(enter)
