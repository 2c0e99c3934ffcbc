"""The collectives on tensors.

Every operation has a `name`, which says which of the ranks' requests belong together; without one
it is the count of unnamed operations on its process set, so all ranks must then issue them in the
same order; an operation that fails before it is submitted does not count.

Tensors are dense and contiguous, on any device; those in CUDA memory are reduced by NCCL where it is
available, all others are copied to host memory. Their dtype is one of uint8, int8, int16, int32,
int64, bool, float16, bfloat16, float32 and float64. Results have the dtype and device of the input.

All of them raise:
  ValueError: an argument is bad, or an operation of that name is in flight.
  HorovodRequestError (a HorovodInternalError): the ranks' requests do not match. On all ranks; the
    world goes on.
  HorovodInternalError: Horovod is not initialized, or the world is broken.
"""

from typing import Any

from horovod.common import _built, _essentials, ops, process_sets
from horovod.common._built import *
from horovod.common._essentials import *
from horovod.common.basics import is_homogeneous
from horovod.common.exceptions import HorovodRequestError
from horovod.common.process_sets import (
    ProcessSet,
    add_process_set,
    global_process_set,
    remove_process_set,
)
from horovod.common.util import get_average_backwards_compatibility_fun
from horovod.torch import _allgather, _allreduce, _alltoall, _broadcast, _reducescatter
from horovod.torch._allgather import *
from horovod.torch._allgather import HorovodAllgather, HorovodGroupedAllgather
from horovod.torch._allreduce import *
from horovod.torch._allreduce import HorovodAllreduce, HorovodGroupedAllreduce
from horovod.torch._alltoall import *
from horovod.torch._alltoall import HorovodAlltoall, HorovodGroupedAlltoall
from horovod.torch._broadcast import *
from horovod.torch._broadcast import HorovodBroadcast, HorovodGroupedBroadcast
from horovod.torch._reducescatter import *
from horovod.torch._reducescatter import HorovodGroupedReducescatter, HorovodReducescatter
from horovod.torch._sparse import sparse_allreduce_async
from horovod.torch._tensors import not_compiled
from horovod.torch.compression import Compression

__all__ = [
    *_built.__all__,
    *_essentials.__all__,
    *_allgather.__all__,
    *_allreduce.__all__,
    *_alltoall.__all__,
    *_broadcast.__all__,
    *_reducescatter.__all__,
    "Compression",
    "HorovodAllgather",
    "HorovodAllreduce",
    "HorovodAlltoall",
    "HorovodBroadcast",
    "HorovodGroupedAllgather",
    "HorovodGroupedAllreduce",
    "HorovodGroupedAlltoall",
    "HorovodGroupedBroadcast",
    "HorovodGroupedReducescatter",
    "HorovodReducescatter",
    "HorovodRequestError",
    "ProcessSet",
    "add_process_set",
    "barrier",
    "global_process_set",
    "handle_average_backwards_compatibility",
    "is_homogeneous",
    "join",
    "poll",
    "remove_process_set",
    "sparse_allreduce_async",
    "synchronize",
]


@not_compiled
def poll(handle: int) -> bool:
    """Whether :func:`synchronize` would return at once. Raises ValueError for an unknown handle."""
    return ops.poll(handle)


@not_compiled
def synchronize(handle: int) -> Any:
    """Waits for an asynchronous operation and returns its output: what the function without
    ``_async`` returns, except that alltoall's is always a pair, and a group's a tuple.

    Returns None for a handle that is unknown or was waited for before. Raises HorovodRequestError or
    HorovodInternalError if the operation failed.
    """
    return ops.synchronize(handle)


@not_compiled
def join(device: int = -1) -> int:
    """Declares that this rank has no more data, and blocks until all ranks have joined.

    Until then this rank takes part in the others' allreduces, with zeros, or for hvd.Min, Max and
    Product with the neutral element. hvd.Average still divides by the number of all ranks. Any other
    operation of all ranks fails on the ranks that have not joined (:class:`HorovodRequestError`);
    they can continue. Process sets have no join.

    Args:
      device: not used; any rank's tensors may be anywhere.

    Returns the last rank to join, the same on all ranks. Raises HorovodInternalError if Horovod is
    not initialized or the world is broken.
    """
    return ops.join()


barrier = not_compiled(process_sets.barrier)

handle_average_backwards_compatibility = get_average_backwards_compatibility_fun()
