"""torch's variables in processes that srun or mpirun has started, for ``init_process_group()`` without an address.

torchrun and horovodrun set RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT; srun and mpirun have variables of their own,
and none for the address.
"""

import functools
import os
import sys
from collections.abc import Iterator
from typing import Any, Callable

import torch.distributed as dist

from horovod.common import _origin, basics
from horovod.common._ancestors import ancestors

_RANKS = ("RANK", "WORLD_SIZE")
_ADDRESS = ("MASTER_ADDR", "MASTER_PORT")
_CALL = "init_process_group()"


def show_ranks() -> None:
    """Sets RANK, WORLD_SIZE and LOCAL_RANK, which scripts read before ``init_process_group()``, to what srun or mpirun says. Does
    nothing if one of the first two is set, or the processes of the launch can't find each other.
    """
    if any(name in os.environ for name in _RANKS):
        return
    launch = _origin.launch_of(os.environ, ancestors())
    if launch is None or launch.problem or not launch.name:
        return
    os.environ.update(zip(_RANKS, (str(launch.rank), str(launch.size))))
    if launch.local_rank:
        os.environ.setdefault("LOCAL_RANK", launch.local_rank)


def _joining(find_store: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    @functools.wraps(find_store)
    def joining(*arguments: Any, **options: Any) -> Iterator[Any]:
        if not any(os.environ.get(name) for name in _ADDRESS):
            timeout = options.get("timeout", dist.default_pg_timeout)
            basics.join_launch(_CALL, timeout.total_seconds())
        return find_store(*arguments, **options)

    return joining


def join_for_addresses() -> None:
    """Makes ``init_process_group()`` without an address join the launch of srun or mpirun, as ``hvd.init()`` does. The job that this
    makes sets torch's variables. torch has no call that replaces what finds the store, so that its table is changed.
    """
    handlers = sys.modules[dist.__name__ + ".rendezvous"]._rendezvous_handlers
    handlers["env"] = _joining(handlers["env"])
