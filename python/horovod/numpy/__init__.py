"""Horovod for numpy arrays: ``import horovod.numpy as hvd``.

Every function also takes buffers (bytearray, array.array) and arrays of other libraries, by DLPack or
``__cuda_array_interface__``. Results are arrays of numpy. Those of an array in a GPU's memory are there, too: arrays of CuPy
and tensors of PyTorch for theirs, else a :class:`DeviceArray`.

Arrays are contiguous, of uint8, int8, int16, int32, int64, bool, float16, float32, float64, complex64 or complex128; complex
ones are reduced by hvd.Sum and hvd.Average only. Operations of the same name belong together; operations without a name are
matched in the order in which each rank issues them.

Raises (all collectives):
  ValueError: an argument is invalid.
  TypeError: `process_set` is not a registered process set.
  HorovodRequestError: the ranks' requests do not match; the world stays usable.
  HorovodInternalError: Horovod is not initialized, or the world is broken.

This package is also the example of how a framework is added: an adapter for its tensors (_arrays.py), public functions
(here) and elastic state (elastic.py).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

from horovod.numpy import _package  # noqa: F401  # first: says what is missing

# isort: split
from numpy import ndarray as Array

from horovod.common._essentials import *
from horovod.common.collective import Call, reduction
from horovod.common.collective_kinds import Collectives
from horovod.common.interface import *
from horovod.common.interface import Average, ProcessSet, global_process_set, synchronize
from horovod.numpy import _arrays, elastic  # noqa: F401
from horovod.numpy._arrays import array_of
from horovod.numpy._device_arrays import DeviceArray as DeviceArray

if TYPE_CHECKING:
    from horovod.common.ops import Handle
    from horovod.numpy._arrays import Given

Name = Optional[str]
Splits = Union[Sequence[int], Array, None]

_collectives = Collectives[Array](_arrays)


def allreduce_async(
    array: "Given",
    name: Name = None,
    op: int = Average,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> "Handle[Array]":
    """Starts an :func:`allreduce` and returns at once.

    Args:
      array: an array of any shape. Shape and dtype are the same on all ranks. It must not change until `synchronize` has
        returned; this holds for all functions whose name ends in ``_async``.
      name: the operation's name.
      op: hvd.Average (the default), hvd.Sum, hvd.Adasum, hvd.Min, hvd.Max or hvd.Product.
      prescale_factor: factor by which the input is multiplied before the reduction.
      postscale_factor: factor by which the result is multiplied after it.
      process_set: the ranks that take part; hvd.Average divides by their number.

    Returns:
      A handle for `synchronize`.

    Example:
      >>> import numpy as np
      >>> handle = hvd.allreduce_async(np.array([1.0, 3.0]), op=hvd.Sum)
      >>> hvd.synchronize(handle)
      array([1., 3.])
    """
    call = reduction(name, process_set, op, prescale_factor, postscale_factor)
    return _collectives.allreduce.begin(array_of(array), call)


def allreduce(array: "Given", *args: Any, **kwargs: Any) -> Array:
    """Reduces the ranks' arrays and returns the result.

    Args:
      array: an array of any shape. Shape and dtype are the same on all ranks.
      args, kwargs: further arguments, as for :func:`allreduce_async`.

    Returns:
      A new array of the same shape and dtype.

    Example:
      >>> import numpy as np
      >>> hvd.allreduce(np.array([1.0, 3.0]), op=hvd.Sum, postscale_factor=2)
      array([2., 6.])
    """
    result: Array = synchronize(allreduce_async(array, *args, **kwargs))
    return result


def grouped_allreduce_async(
    arrays: Sequence["Given"],
    name: Name = None,
    op: int = Average,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> "Handle[tuple[Array, ...]]":
    """Starts a :func:`grouped_allreduce` and returns at once.

    Args:
      arrays: at least one array. They may differ in shape and dtype.
      name, op, prescale_factor, postscale_factor, process_set: as for :func:`allreduce_async`.

    Returns:
      A handle for `synchronize`.
    """
    call = reduction(name, process_set, op, prescale_factor, postscale_factor)
    return _collectives.allreduce.begin_group([array_of(array) for array in arrays], call)


def grouped_allreduce(arrays: Sequence["Given"], *args: Any, **kwargs: Any) -> list[Array]:
    """Reduces several arrays as one operation: none is reduced before all are ready on all ranks.

    Args:
      arrays: at least one array. They may differ in shape and dtype.
      args, kwargs: further arguments, as for :func:`grouped_allreduce_async`.

    Returns:
      The list of the results.

    Example:
      >>> import numpy as np
      >>> hvd.grouped_allreduce([np.array([1.0]), np.array([2, 3])], op=hvd.Max)
      [array([1.]), array([2, 3])]
    """
    return list(synchronize(grouped_allreduce_async(arrays, *args, **kwargs)))


def allgather_async(array: "Given", name: Name = None, process_set: ProcessSet = global_process_set) -> "Handle[Array]":
    """Starts an :func:`allgather` and returns at once.

    Args:
      array, name, process_set: as for :func:`allgather`.

    Returns:
      A handle for `synchronize`.
    """
    return _collectives.allgather.begin(array_of(array), Call(name, process_set))


def allgather(array: "Given", name: Name = None, process_set: ProcessSet = global_process_set) -> Array:
    """Concatenates the ranks' arrays on the first dimension, in rank order.

    Args:
      array: an array with at least one dimension. Only the first dimension may differ between ranks.
      name: the operation's name.
      process_set: the ranks that take part.

    Returns:
      The concatenated array, the same on all ranks.

    Raises:
      IndexError: `array` has no dimensions.

    Example:
      >>> import numpy as np
      >>> hvd.allgather(np.array([[1, 2]]))
      array([[1, 2]])
    """
    return _collectives.allgather.run(array_of(array), Call(name, process_set))


def broadcast_async(
    array: "Given", root_rank: int, name: Name = None, process_set: ProcessSet = global_process_set
) -> "Handle[Array]":
    """Starts a :func:`broadcast` and returns at once.

    Args:
      array: on the root the values to send. Shape and dtype are the same on all ranks.
      root_rank: the root's rank in the world, also with a process set.
      name: the operation's name.
      process_set: the ranks that take part.

    Returns:
      A handle for `synchronize`.
    """
    return _collectives.broadcast.begin(array_of(array), Call(name, process_set, False, {"root_rank": root_rank}))


def broadcast(array: "Given", root_rank: int, *args: Any, **kwargs: Any) -> Array:
    """Returns rank `root_rank`'s array on all ranks.

    Args:
      array: on the root the values to send. Shape and dtype are the same on all ranks.
      root_rank: the root's rank in the world, also with a process set.
      args, kwargs: further arguments, as for :func:`broadcast_async`.

    Returns:
      A new array with the root's values.

    Raises:
      ValueError: `root_rank` is not in the process set.

    Example:
      >>> import numpy as np
      >>> hvd.broadcast(np.array([1.5]), root_rank=0)
      array([1.5])
    """
    result: Array = synchronize(broadcast_async(array, root_rank, *args, **kwargs))
    return result


def alltoall_async(
    array: "Given", splits: Splits = None, name: Name = None, process_set: ProcessSet = global_process_set
) -> "Handle[tuple[Array, Array]]":
    """Starts an :func:`alltoall` and returns at once.

    Args:
      array: an array with at least one dimension. Only the first dimension may differ between ranks.
      splits: how many rows go to each rank, in rank order; None: the same number to each.
      name: the operation's name.
      process_set: the ranks that take part.

    Returns:
      A handle for `synchronize`, which returns the pair (rows, received_splits) also if `splits` is None.
    """
    call = Call(name, process_set, False, {"splits": [_arrays.splits_of(splits)]})
    return _collectives.alltoall.begin(array_of(array), call)


def alltoall(array: "Given", splits: Splits = None, *args: Any, **kwargs: Any) -> Union[Array, tuple[Array, Array]]:
    """Sends rows of `array` to all ranks and returns the rows received.

    Args:
      array: an array with at least one dimension. Only the first dimension may differ between ranks.
      splits: how many rows go to each rank, in rank order; None: the same number to each.
      args, kwargs: further arguments, as for :func:`alltoall_async`.

    Returns:
      The rows received, in rank order. If `splits` is given, a pair of these and how many rows came from each rank.

    Example:
      >>> import numpy as np
      >>> rows, received_splits = hvd.alltoall(np.array([5, 6, 7]), splits=[2])
      >>> rows, received_splits.tolist()
      (array([5, 6]), [2])
    """
    rows, received = synchronize(alltoall_async(array, splits, *args, **kwargs))
    return rows if splits is None else (rows, received)


def reducescatter_async(
    array: "Given",
    name: Name = None,
    op: int = Average,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> "Handle[Array]":
    """Starts a :func:`reducescatter` and returns at once.

    Args:
      array: an array with at least one dimension. Shape and dtype are the same on all ranks.
      name, op, prescale_factor, postscale_factor, process_set: as for :func:`allreduce_async`; hvd.Adasum is not supported.

    Returns:
      A handle for `synchronize`.
    """
    call = reduction(name, process_set, op, prescale_factor, postscale_factor)
    return _collectives.reducescatter.begin(array_of(array), call)


def reducescatter(array: "Given", *args: Any, **kwargs: Any) -> Array:
    """Reduces the ranks' arrays and returns this rank's rows of the result.

    The rows are distributed evenly; of n ranks the first ``rows % n`` get one row more.

    Args:
      array: an array with at least one dimension. Shape and dtype are the same on all ranks.
      args, kwargs: further arguments, as for :func:`reducescatter_async`.

    Returns:
      This rank's rows, a new array.

    Example:
      >>> import numpy as np
      >>> hvd.reducescatter(np.array([[1.0, 2.0]]), op=hvd.Sum)
      array([[1., 2.]])
    """
    result: Array = synchronize(reducescatter_async(array, *args, **kwargs))
    return result
