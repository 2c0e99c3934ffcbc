"""The roll call of the ranks before they synchronize a state: in which run of the script is each?"""

from typing import NamedTuple

from horovod.common import basics, ops
from horovod.common.objects import broadcast_object
from horovod.elastic.runs import runs

_NAME = "horovod.elastic.runs"
_RANKS = 1 << 31


class Roll(NamedTuple):
    """The result, seen from this rank."""

    is_complete: bool  # all ranks are in the newest run
    is_behind: bool  # this rank is in an earlier one
    all_are_behind: bool  # and so are all others, in the same one
    is_under_way: bool  # some rank has a state of the newest run


def call_roll() -> Roll:
    """Compares the runs of all ranks. What a rank knows of runs that have ended is known to all afterwards.

    All ranks of the world must call it. Raises HorovodInternalError if the world breaks.
    """
    if not basics.is_initialized() or basics.size() == 1:
        behind = runs.is_over()
        return Roll(not behind, behind, behind, runs.is_under_way)
    rank = basics.rank()
    own = (runs.ended() * _RANKS + _RANKS - 1 - rank, -runs.ended(), -runs.number, runs.number * 2 + runs.is_under_way)
    most, least, earliest, latest = ops.maxima_over_ranks(_NAME, own)
    ended, teller = most // _RANKS, _RANKS - 1 - most % _RANKS
    if ended != -least:
        runs.adopt(broadcast_object(runs.past() if rank == teller else None, teller, _NAME + ".past"))
    newest = ended + 1  # a process in a run knows how all runs before it have ended
    all_are_behind = latest // 2 < newest and latest // 2 == -earliest
    is_under_way = latest == newest * 2 + 1
    return Roll(-earliest == newest, runs.number < newest, all_are_behind, is_under_way)
