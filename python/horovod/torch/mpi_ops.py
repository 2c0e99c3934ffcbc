"""The collectives on tensors: allreduce, allgather, broadcast, alltoall, reducescatter, barrier and join.

Names: the ranks' requests of the same name belong together. An operation without a `name` is named by the count of
unnamed operations on its process set, so all ranks must issue unnamed operations in the same order. An operation that
fails before it is submitted is not counted.

Tensors are dense and contiguous, on any device. Tensors in CUDA memory are reduced by NCCL if it is available; all
others are copied to host memory. The dtype is one of uint8, int8, int16, int32, int64, bool, float16,
bfloat16, float32, float64, complex64 and complex128; complex tensors are reduced by hvd.Sum and hvd.Average only. Results
have the dtype and the device of the input.

Handles of asynchronous operations are numbers. A script that needs no result may drop the handle: the operation runs to its
end, its memory is released then, and its error, if it has one, is lost.

Raises:
  ValueError: an argument is invalid, or an operation of that name is in flight already.
  HorovodRequestError (a HorovodInternalError): the ranks' requests do not match. It is raised on all ranks, and the
    world stays usable.
  HorovodInternalError: Horovod is not initialized, or the world is broken.
"""

from typing import Any, overload

from horovod.common import _built, _essentials, ops, process_sets
from horovod.common._built import *
from horovod.common._essentials import *
from horovod.common.basics import is_homogeneous
from horovod.common.exceptions import HorovodRequestError
from horovod.common.ops import V
from horovod.common.process_sets import (
    ProcessSet,
    add_process_set,
    global_process_set,
    remove_process_set,
)
from horovod.common.util import get_average_backwards_compatibility_fun
from horovod.torch import _allgather, _allreduce, _alltoall, _broadcast, _rates, _reducescatter
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
    """Returns whether an asynchronous operation is complete, so that :func:`synchronize` would return at once.

    Args:
      handle: what the function whose name ends in ``_async`` returned.

    Raises:
      ValueError: the handle is unknown, or :func:`synchronize` has returned its result already.

    Example:
      >>> import torch
      >>> handle = hvd.allreduce_async(torch.ones(2), name="poll")
      >>> output = hvd.synchronize(handle)
      >>> hvd.poll(handle)
      Traceback (most recent call last):
        ...
      ValueError: Handle ... was not created or has been cleared.
    """
    return ops.poll(handle)


@overload
def synchronize(handle: ops.Handle[V]) -> V: ...


@overload
def synchronize(handle: int) -> Any: ...


@not_compiled
def synchronize(handle: int) -> Any:
    """Waits for an asynchronous operation and returns its output.

    Args:
      handle: what the function whose name ends in ``_async`` returned.

    Returns:
      What the function without ``_async`` returns, with two exceptions: an alltoall always gives the pair (output,
      received_splits), and a grouped operation gives a tuple. None if the handle is unknown, or was waited for before.

    Raises:
      HorovodRequestError: the ranks' requests do not match; the world stays usable.
      HorovodInternalError: the world is broken.

    Example:
      >>> import torch
      >>> handle = hvd.allreduce_async(torch.tensor([1.0, 3.0]), op=hvd.Sum, name="synchronize")
      >>> hvd.synchronize(handle)
      tensor([1., 3.])
    """
    return ops.synchronize(handle)


@not_compiled
def join(device: int = -1) -> int:
    """Declares that this rank has no more data, and blocks until all ranks have joined.

    Until then this rank takes part in the other ranks' allreduces with the neutral element: zeros, or for hvd.Min,
    hvd.Max and hvd.Product the value that does not change the result. hvd.Average still divides by the number of all
    ranks. Any other operation of all ranks fails with :class:`HorovodRequestError` on the ranks that have not joined, and
    they can continue. Only the set of all ranks can be joined, not a process set.

    Args:
      device: not used; the tensors may be on any device.

    Returns:
      The last rank that joined, the same on all ranks.

    Raises:
      HorovodInternalError: Horovod is not initialized, or the world is broken.

    Example:
      >>> hvd.join()
      0
    """
    last = ops.join()
    _rates.forget()
    return last


barrier = not_compiled(process_sets.barrier)

handle_average_backwards_compatibility = get_average_backwards_compatibility_fun()
