"""The collectives on tensors.

Every operation has a `name`, which says which of the ranks' requests belong together; without one
it is the count of unnamed operations on its process set, so all ranks must then issue them in the
same order; those that fail at once on a rank do not count there. Tensors of any device are
accepted; what is not in host memory goes through it.

All of them raise:
  ValueError: an argument is bad, or an operation of that name is in flight.
  HorovodRequestError (a HorovodInternalError): the ranks' requests do not match. On all ranks; the
    world goes on.
  HorovodInternalError: Horovod is not initialized, or the world is broken.
"""

from typing import Any

from horovod.common import ops, process_sets
from horovod.common.basics import (
    ccl_built,
    cross_rank,
    cross_size,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rank,
    rocm_built,
    shutdown,
    size,
    start_timeline,
    stop_timeline,
)
from horovod.common.exceptions import HorovodInternalError, HorovodRequestError
from horovod.common.ops import Adasum, Average, Max, Min, Product, Sum
from horovod.torch._allgather import (
    HorovodAllgather,
    HorovodGroupedAllgather,
    allgather,
    allgather_async,
    grouped_allgather,
    grouped_allgather_async,
)
from horovod.torch._allreduce import (
    HorovodAllreduce,
    HorovodGroupedAllreduce,
    allreduce,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    grouped_allreduce,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
)
from horovod.torch._alltoall import (
    HorovodAlltoall,
    HorovodGroupedAlltoall,
    alltoall,
    alltoall_async,
    grouped_alltoall,
    grouped_alltoall_async,
)
from horovod.torch._broadcast import (
    HorovodBroadcast,
    HorovodGroupedBroadcast,
    broadcast,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    grouped_broadcast,
    grouped_broadcast_,
    grouped_broadcast_async,
    grouped_broadcast_async_,
)
from horovod.torch._reducescatter import (
    HorovodGroupedReducescatter,
    HorovodReducescatter,
    grouped_reducescatter,
    grouped_reducescatter_async,
    reducescatter,
    reducescatter_async,
)
from horovod.torch._sparse import sparse_allreduce_async
from horovod.torch._tensors import not_compiled

__all__ = [
    "Adasum",
    "Average",
    "HorovodAllgather",
    "HorovodAllreduce",
    "HorovodAlltoall",
    "HorovodBroadcast",
    "HorovodGroupedAllgather",
    "HorovodGroupedAllreduce",
    "HorovodGroupedAlltoall",
    "HorovodGroupedBroadcast",
    "HorovodGroupedReducescatter",
    "HorovodInternalError",
    "HorovodReducescatter",
    "HorovodRequestError",
    "Max",
    "Min",
    "Product",
    "Sum",
    "allgather",
    "allgather_async",
    "allreduce",
    "allreduce_",
    "allreduce_async",
    "allreduce_async_",
    "alltoall",
    "alltoall_async",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_async",
    "broadcast_async_",
    "ccl_built",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "gloo_built",
    "gloo_enabled",
    "grouped_allgather",
    "grouped_allgather_async",
    "grouped_allreduce",
    "grouped_allreduce_",
    "grouped_allreduce_async",
    "grouped_allreduce_async_",
    "grouped_alltoall",
    "grouped_alltoall_async",
    "grouped_broadcast",
    "grouped_broadcast_",
    "grouped_broadcast_async",
    "grouped_broadcast_async_",
    "grouped_reducescatter",
    "grouped_reducescatter_async",
    "init",
    "is_homogeneous",
    "is_initialized",
    "join",
    "local_rank",
    "local_size",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "poll",
    "rank",
    "reducescatter",
    "reducescatter_async",
    "rocm_built",
    "shutdown",
    "size",
    "sparse_allreduce_async",
    "start_timeline",
    "stop_timeline",
    "synchronize",
]


@not_compiled
def poll(handle: int) -> bool:
    """Whether :func:`synchronize` would return at once. Raises ValueError for an unknown handle."""
    return ops.poll(handle)


@not_compiled
def synchronize(handle: int) -> Any:
    """Waits for an asynchronous operation and returns its output.

    Returns None for a handle that is unknown or was waited for before.
    """
    return ops.synchronize(handle)


@not_compiled
def join(device: int = -1) -> int:
    """Says that this rank has no more data: it takes part in the others' allreduces until all have
    joined, with zeros, or for hvd.Min, Max and Product with what does not change the result.
    hvd.Average still divides by the number of all ranks. Any other operation of all ranks fails
    on those that have not joined (:class:`HorovodRequestError`), who go on. For operations of all
    ranks; process sets have no join.

    Args:
      device: not used; any rank's tensors may be anywhere.

    Returns the last rank to join, the same on all ranks.
    """
    return ops.join()


barrier = not_compiled(process_sets.barrier)
