"""The environment of a torch.distributed group with the same processes and ranks as the current world."""

import os
import socket
from typing import Optional

from horovod.common.basics import local_rank, local_size, rank, size
from horovod.common.objects import allgather_object

# Holds the port on which rank 0's store will listen; see :func:`torch_distributed_env`.
_reserved: Optional[socket.socket] = None


def torch_distributed_env() -> dict[str, str]:
    """Returns the environment variables for a torch.distributed group that has the processes and ranks of the current world.

    In an elastic job a group ends with its world. So call this in each world, at the start of the function that
    hvd.elastic.run calls::

        os.environ.update(hvd.torch_distributed_env())
        torch.distributed.init_process_group("gloo")
        try:
            ...
        finally:
            torch.distributed.destroy_process_group()

    Static jobs have these variables from the start. All ranks must call the function at the same point.

    Returns:
      RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, GROUP_WORLD_SIZE, ROLE_RANK, ROLE_WORLD_SIZE, MASTER_ADDR
      and MASTER_PORT, as torchrun sets them. GROUP_RANK is the number of the machine. MASTER_PORT is a port of rank 0's
      host, which is reserved until the next call.

    Raises:
      ValueError: hvd.init() was not called.
      HorovodInternalError: the world breaks.
      OSError: rank 0's host has no free port.

    Example:
      >>> environment = hvd.torch_distributed_env()
      >>> environment["RANK"], environment["WORLD_SIZE"]
      ('0', '1')
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
    """Returns this host's address, and a free port of it that stays bound. The store can still listen there, because both
    sockets set SO_REUSEADDR.
    """
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
    """Returns the number of the rank's machine and the number of machines, given the local sizes of all ranks. The ranks of a
    machine are consecutive.
    """
    first, starts = 0, []
    while first < len(local_sizes):
        starts.append(first)
        first += local_sizes[first]
    return sum(start <= own_rank for start in starts) - 1, len(starts)
