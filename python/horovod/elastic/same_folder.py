"""The check that rank 0 of an elastic job writes checkpoints to a folder that the other ranks have, too. Any of them may become
rank 0.
"""

from typing import Optional

from horovod.common.basics import rank
from horovod.common.util import is_elastic
from horovod.elastic import checkpoint_folder
from horovod.elastic.checkpoint_folder import Place
from horovod.elastic.messages import say

_compared: set[str] = set()  # places
_told = False


def locked_place(place: Optional[Place]) -> str:
    """Returns where rank 0, which calls it, has locked its folder, for :func:`compare` on the others; "": there is nothing to be
    compared.
    """
    return place.locked() if place is not None and is_elastic() else ""


def compare(place: Optional[Place], of_rank_0: str) -> None:
    """Looks for rank 0's lock in `place`, once for each place. Says in one line, once in a process, that it is not there.

    Args:
      place: where this process would write as rank 0; None: nowhere.
      of_rank_0: what :func:`locked_place` has returned on rank 0.
    """
    global _told
    path = "" if place is None else place.path
    if _told or not of_rank_0 or path in _compared:
        return
    _compared.add(path)
    if place is not None and place.shows_lock(checkpoint_folder.job()):
        return
    _told = True
    where = f"rank {rank()} on host {checkpoint_folder.host()}"
    what = f"checkpoint_dir {path} of {where} is not rank 0's" if path else f"{where} has no checkpoint_dir"
    say(
        f"{what}: rank 0 writes checkpoints to {of_rank_0}. If this process became rank 0, it would not find them, and a restart "
        "could begin at an old commit. Give all ranks the same folder of a shared file system, or a URL"
    )
