"""The ids of the job's commits, which are the same on all ranks, so that the job knows which process has the newest state.

An id consists of the world in which the commit was made and its number, counted through the whole job (``CommitId`` in
base/ids.h). Of two ids the greater one is that of the newer commit: if a world was given up, a newer one may use its numbers
again, for other commits.
"""

from typing import Optional

from horovod import _ffi
from horovod.common import basics, ops
from horovod.common.exceptions import HorovodInternalError

_NUMBER_BITS = 40

_newest = 0


def newest() -> int:
    """Returns the number of the newest commit that this process knows of; 0: there is none."""
    return number_of(_newest)


def newest_id() -> int:
    """Returns the id of that commit."""
    return _newest


def id_of(world: int, number: int) -> int:
    """Returns the id of commit `number` that was made in `world` of this job; 0: before this job."""
    return world << _NUMBER_BITS | number


def number_of(commit: int) -> int:
    """Returns the number in the id `commit`."""
    return commit & ((1 << _NUMBER_BITS) - 1)


def begin() -> Optional[int]:
    """Starts the operation by which all ranks agree on a commit, and on whether the world is about to change. Returns its
    handle; None in a world of one, which needs no communication.

    Raises HorovodInternalError if the world is broken, or the job gave it up while this host was paused.
    """
    if basics.is_initialized():
        ops.check_ready()
        _ffi.check_world()
        if basics.size() > 1:
            return ops.commit_async()
    return None


def end(operation: Optional[int]) -> bool:
    """Waits for the operation. Returns whether the world is about to change, the same on all ranks.

    Raises HorovodInternalError if it failed.
    """
    return _ffi.world_is_changing() if operation is None else ops.synchronize(operation)


def count() -> None:
    """Records that the ranks have agreed on a commit. Each rank calls it once per commit."""
    global _newest
    _newest = id_of(_ffi.query("epoch"), number_of(_newest) + 1)


def abandon(operation: Optional[int]) -> None:
    """Waits for the operation of a commit that this process has no save of. The commit is counted if other ranks may keep it."""
    try:
        end(operation)
    except (ValueError, HorovodInternalError):
        return
    count()


def publish() -> None:
    """Records that this process can now restore the newest commit."""
    _ffi.set_commit(_newest)


def forget() -> None:
    """Records that this process can restore no commit of the job. A commit in the store counts until it is loaded."""
    if _newest > 0:
        _ffi.set_commit(0)


def inherit(commit: int) -> None:
    """Records the id of the commit that this process has taken over from its predecessor."""
    global _newest
    _newest = commit
    _ffi.set_commit(commit)


def disown() -> None:
    """Records that this process can restore no commit, although the store may have one: it belongs to another run."""
    _ffi.set_commit(0)


def agree(known: int) -> None:
    """Makes the newest commit that any rank knows of, the id `known` included, the newest commit of all ranks. Also a barrier.

    Raises HorovodInternalError if the world is broken.
    """
    global _newest
    commit = max(_newest, known)
    if basics.is_initialized() and basics.size() > 1:
        commit = ops.max_over_ranks(commit)
    _newest = commit
