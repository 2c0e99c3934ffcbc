"""The collectives on MXNet's arrays.

They take dense NDArrays in host memory, of int8, uint8, int32, int64, float16, bfloat16, float32, float64 or bool, and
are complete when they return. ``mxnet.autograd`` does not record them: their results are constants. `priority` is
accepted for compatibility and not used.

Raises (all collectives):
  ValueError: an argument is invalid.
  TypeError: `process_set` is not a registered process set.
  HorovodRequestError: the ranks' requests do not match; the world stays usable.
  HorovodInternalError: Horovod is not initialized, or the world is broken.
"""

from collections.abc import Sequence
from typing import Any, Optional, Union

from mxnet.ndarray import NDArray as Array

from horovod.common._built import *
from horovod.common._essentials import *
from horovod.common.collective import Call, reduction
from horovod.common.collective_kinds import Collectives
from horovod.common.ops import Average
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.common.process_sets import add_process_set as add_process_set
from horovod.common.process_sets import remove_process_set as remove_process_set
from horovod.common.util import get_average_backwards_compatibility_fun
from horovod.mxnet import _arrays

__all__ = [
    "allgather",
    "allreduce",
    "allreduce_",
    "alltoall",
    "broadcast",
    "broadcast_",
    "grouped_allgather",
    "grouped_allreduce",
    "grouped_allreduce_",
    "grouped_reducescatter",
    "reducescatter",
]

Name = Optional[str]

_collectives = Collectives(_arrays)
handle_average_backwards_compatibility = get_average_backwards_compatibility_fun()


def _allreduce_call(
    in_place: bool,
    average: Optional[bool] = None,
    name: Name = None,
    priority: int = 0,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    op: Optional[int] = None,
) -> Call:
    op = handle_average_backwards_compatibility(op, average)
    return reduction(name, process_set, op, prescale_factor, postscale_factor, in_place)


def allreduce(tensor: Array, *args: Any, **kwargs: Any) -> Array:
    """Reduces the ranks' arrays and returns the result.

    Args:
      tensor: an array of any shape. Shape and dtype are the same on all ranks.
      args, kwargs: `average` (deprecated), `name`, `priority` (not used), `prescale_factor`, `postscale_factor`,
        `process_set` and `op`: hvd.Average (the default), hvd.Sum, hvd.Min, hvd.Max, hvd.Product or hvd.Adasum.

    Returns:
      A new array of the same shape and dtype.

    Example:
      >>> import mxnet
      >>> hvd.allreduce(mxnet.nd.array([1.0, 3.0]), op=hvd.Sum).asnumpy().tolist()
      [1.0, 3.0]
    """
    return _collectives.allreduce.run(tensor, _allreduce_call(False, *args, **kwargs))


def allreduce_(tensor: Array, *args: Any, **kwargs: Any) -> Array:
    """Reduces the ranks' arrays, in place.

    Args:
      tensor: the array that is reduced, and overwritten with the result.
      args, kwargs: further arguments, as for :func:`allreduce`.

    Returns:
      `tensor`.
    """
    return _collectives.allreduce.run(tensor, _allreduce_call(True, *args, **kwargs))


def grouped_allreduce(tensors: Sequence[Array], *args: Any, **kwargs: Any) -> Sequence[Array]:
    """Reduces several arrays as one operation: none is reduced before all are ready on all ranks.

    Args:
      tensors: the arrays. They may differ in shape and dtype.
      args, kwargs: further arguments, as for :func:`allreduce`.

    Returns:
      The list of the results.
    """
    call = _allreduce_call(False, *args, **kwargs)
    return list(_collectives.allreduce.run_group(tensors, call)) if tensors else tensors


def grouped_allreduce_(tensors: Sequence[Array], *args: Any, **kwargs: Any) -> Sequence[Array]:
    """Reduces several arrays as :func:`grouped_allreduce` does, in place.

    Args:
      tensors: the arrays that are reduced, and overwritten with the results.
      args, kwargs: further arguments, as for :func:`allreduce`.

    Returns:
      `tensors`.
    """
    call = _allreduce_call(True, *args, **kwargs)
    if tensors:
        _collectives.allreduce.run_group(tensors, call)
    return tensors


def allgather(
    tensor: Array, name: Name = None, priority: int = 0, process_set: ProcessSet = global_process_set
) -> Array:
    """Concatenates the ranks' arrays on the first dimension, in rank order.

    Args:
      tensor: an array with at least one dimension. Only the first dimension may differ between ranks.
      name: the operation's name, the same on all ranks.
      priority: not used.
      process_set: the ranks that take part.

    Returns:
      The concatenated array, the same on all ranks.

    Raises:
      IndexError: `tensor` has no dimensions.

    Example:
      >>> import mxnet
      >>> hvd.allgather(mxnet.nd.array([1, 2])).asnumpy().tolist()
      [1.0, 2.0]
    """
    return _collectives.allgather.run(tensor, Call(name, process_set))


def grouped_allgather(
    tensors: Sequence[Array], name: Name = None, priority: int = 0, process_set: ProcessSet = global_process_set
) -> list[Array]:
    """Gathers several arrays as one operation: none is gathered before all are ready on all ranks.

    Args:
      tensors: the arrays, each as for :func:`allgather`.
      name, priority, process_set: as for :func:`allgather`.

    Returns:
      The list of the concatenated arrays.
    """
    return list(_collectives.allgather.run_group(tensors, Call(name, process_set)))


def broadcast(
    tensor: Array, root_rank: int, name: Name = None, priority: int = 0, process_set: ProcessSet = global_process_set
) -> Array:
    """Returns rank `root_rank`'s array on all ranks.

    Args:
      tensor: on the root the values to send. Shape and dtype are the same on all ranks.
      root_rank: the root's rank in the world, also with a process set.
      name: the operation's name, the same on all ranks.
      priority: not used.
      process_set: the ranks that take part.

    Returns:
      A new array with the root's values.

    Example:
      >>> import mxnet
      >>> hvd.broadcast(mxnet.nd.array([1.5]), root_rank=0).asnumpy().tolist()
      [1.5]
    """
    return _collectives.broadcast.run(tensor, Call(name, process_set, False, {"root_rank": root_rank}))


def broadcast_(
    tensor: Array, root_rank: int, name: Name = None, priority: int = 0, process_set: ProcessSet = global_process_set
) -> Array:
    """Overwrites an array with rank `root_rank`'s array.

    Args:
      tensor: on the root the values to send, on other ranks the array that is overwritten.
      root_rank, name, priority, process_set: as for :func:`broadcast`.

    Returns:
      `tensor`.
    """
    return _collectives.broadcast.run(tensor, Call(name, process_set, True, {"root_rank": root_rank}))


def alltoall(
    tensor: Array,
    splits: Any = None,
    name: Name = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> Union[Array, tuple[Array, Array]]:
    """Sends rows of an array to all ranks and returns the rows received.

    Args:
      tensor: an array with at least one dimension. Only the first dimension may differ between ranks.
      splits: how many rows go to each rank, in rank order: a list or an int32 array; None: the same number to each.
      name: the operation's name, the same on all ranks.
      priority: not used.
      process_set: the ranks that take part.

    Returns:
      The rows received, in rank order. If `splits` is given, a pair of these and how many rows came from each rank (int32).
    """
    kind = _arrays.kind(splits)
    if kind is not None and kind[1] == "int32" and len(kind[0]) == 1:
        splits = splits.asnumpy()
    call = Call(name, process_set, False, {"splits": [splits]})
    rows, received = _collectives.alltoall.run(tensor, call)
    return rows if splits is None else (rows, received)


def _reducescatter_call(
    op: int = Average,
    name: Name = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Call:
    return reduction(name, process_set, op, prescale_factor, postscale_factor)


def reducescatter(tensor: Array, *args: Any, **kwargs: Any) -> Array:
    """Reduces the ranks' arrays and returns this rank's rows of the result.

    The rows are distributed evenly; of n ranks the first ``rows % n`` get one row more.

    Args:
      tensor: an array with at least one dimension. Shape and dtype are the same on all ranks.
      args, kwargs: `op` (hvd.Average by default), `name`, `priority` (not used), `process_set`, `prescale_factor` and
        `postscale_factor`.

    Returns:
      This rank's rows, a new array.
    """
    return _collectives.reducescatter.run(tensor, _reducescatter_call(*args, **kwargs))


def grouped_reducescatter(tensors: Sequence[Array], *args: Any, **kwargs: Any) -> list[Array]:
    """Reduces several arrays as one operation and returns this rank's rows of each.

    Args:
      tensors: the arrays, each as for :func:`reducescatter`.
      args, kwargs: further arguments, as for :func:`reducescatter`.

    Returns:
      The list of this rank's rows of each.
    """
    return list(_collectives.reducescatter.run_group(tensors, _reducescatter_call(*args, **kwargs)))
