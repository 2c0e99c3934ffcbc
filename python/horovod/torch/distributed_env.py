"""The group of torch.distributed that has the same processes and ranks as the present world."""

import os
import socket
from typing import Optional

from horovod.common.basics import local_rank, local_size, rank, size
from horovod.common.objects import allgather_object

# Holds the port on which rank 0's store will listen; see :func:`torch_distributed_env`.
_reserved: Optional[socket.socket] = None


def torch_distributed_env() -> dict[str, str]:
    """Returns the environment variables with which torch.distributed.init_process_group makes a group of the
    present world's processes, with their ranks: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK,
    GROUP_WORLD_SIZE, ROLE_RANK, ROLE_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun sets them. A group
    is a machine.

    Static jobs have these variables from the start. In an elastic job a group ends with its world: call
    this in each, at the start of the function that hvd.elastic.run calls::

        os.environ.update(hvd.torch_distributed_env())
        torch.distributed.init_process_group("gloo")
        try:
            ...
        finally:
            torch.distributed.destroy_process_group()

    All ranks must call it at the same point. MASTER_PORT is a port of rank 0's host that no one else gets
    until the next call.

    Raises ValueError before hvd.init(), HorovodInternalError if the world breaks, OSError if rank 0's host
    has no free port.
    """
    store = _reserve_store() if rank() == 0 else ("", "")
    told = allgather_object((local_size(), store), name="horovod.torch_distributed_env")
    group, groups = _group_of(rank(), [of_host for of_host, _ in told])
    address, port = told[0][1]
    numbers = {
        "RANK": rank(),
        "WORLD_SIZE": size(),
        "LOCAL_RANK": local_rank(),
        "LOCAL_WORLD_SIZE": local_size(),
        "GROUP_RANK": group,
        "GROUP_WORLD_SIZE": groups,
        "ROLE_RANK": rank(),
        "ROLE_WORLD_SIZE": size(),
    }
    return {**{name: str(number) for name, number in numbers.items()}, "MASTER_ADDR": address, "MASTER_PORT": port}


def _reserve_store() -> tuple[str, str]:
    """This host's address, and a free port of it. The store can listen there as it sets SO_REUSEADDR, too."""
    global _reserved
    address = os.environ.get("HOROVOD_HOST_ADDRESS", "127.0.0.1")
    held = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind((address, 0))
    if _reserved is not None:
        _reserved.close()
    _reserved = held
    return address, str(held.getsockname()[1])


def _group_of(own_rank: int, local_sizes: list[int]) -> tuple[int, int]:
    """The number of the rank's machine, and how many machines there are, from the local sizes of all ranks.
    The ranks of a machine are neighbours."""
    first, starts = 0, []
    while first < len(local_sizes):
        starts.append(first)
        first += local_sizes[first]
    return sum(start <= own_rank for start in starts) - 1, len(starts)
