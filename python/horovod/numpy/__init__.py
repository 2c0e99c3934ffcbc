"""Horovod for numpy arrays: ``import horovod.numpy as hvd``. Buffers (bytearray, array.array) and
objects with DLPack (arrays of other libraries, in host memory) will do, too; results are arrays.

Arrays are contiguous, of uint8, int8, int16, int32, int64, bool, float16, float32 or float64. Operations of one name
belong together; those without a name in the order in which each rank issues them. All raise ValueError for bad
arguments (TypeError for what is no process set), HorovodRequestError if the ranks' requests do not match, and
HorovodInternalError if Horovod is not initialized or the world is broken.

This is also the example of how a framework is added: an adapter for its tensors (_arrays.py),
public functions (here) and elastic state (elastic.py).
"""

from collections.abc import Sequence
from typing import Any, Optional, Union

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

Name = Optional[str]
Splits = Union[Sequence[int], Array, None]

_collectives = Collectives(_arrays)


def allreduce_async(
    array: Any,
    name: Name = None,
    op: int = Average,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an :func:`allreduce`; returns the handle, for synchronize. The array must not change
    until then, as in all functions that end in _async."""
    call = reduction(name, process_set, op, prescale_factor, postscale_factor)
    return _collectives.allreduce.start(array_of(array), call)


def allreduce(array: Any, *args: Any, **kwargs: Any) -> Array:
    """Reduces the ranks' arrays, of the same shape and type, and returns the result. Arguments are
    those of :func:`allreduce_async`; `op` is Average, Sum, Adasum, Min, Max or Product."""
    return synchronize(allreduce_async(array, *args, **kwargs))


def grouped_allreduce_async(
    arrays: Sequence[Any],
    name: Name = None,
    op: int = Average,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a :func:`grouped_allreduce`; returns the handle."""
    call = reduction(name, process_set, op, prescale_factor, postscale_factor)
    return _collectives.allreduce.start_group([array_of(array) for array in arrays], call)


def grouped_allreduce(arrays: Sequence[Any], *args: Any, **kwargs: Any) -> list[Array]:
    """:func:`allreduce` of several arrays at once; returns the list of results."""
    return list(synchronize(grouped_allreduce_async(arrays, *args, **kwargs)))


def allgather_async(array: Any, name: Name = None, process_set: ProcessSet = global_process_set) -> int:
    """Starts an :func:`allgather`; returns the handle."""
    return _collectives.allgather.start(array_of(array), Call(name, process_set))


def allgather(array: Any, name: Name = None, process_set: ProcessSet = global_process_set) -> Array:
    """Concatenates the ranks' arrays on the first dimension, in rank order. Only that dimension may
    differ between ranks. Raises IndexError for an array without dimensions."""
    return _collectives.allgather.run(array_of(array), Call(name, process_set))


def broadcast_async(array: Any, root_rank: int, name: Name = None, process_set: ProcessSet = global_process_set) -> int:
    """Starts a :func:`broadcast`; returns the handle."""
    return _collectives.broadcast.start(array_of(array), Call(name, process_set, False, {"root_rank": root_rank}))


def broadcast(array: Any, root_rank: int, *args: Any, **kwargs: Any) -> Array:
    """Returns rank `root_rank`'s array on all ranks; shape and type are the same on all."""
    return synchronize(broadcast_async(array, root_rank, *args, **kwargs))


def alltoall_async(
    array: Any, splits: Splits = None, name: Name = None, process_set: ProcessSet = global_process_set
) -> int:
    """Starts an :func:`alltoall`; synchronize returns the rows and the received splits."""
    if isinstance(splits, Array) and splits.dtype.kind in "iu" and splits.ndim == 1:
        splits = splits.tolist()
    return _collectives.alltoall.start(array_of(array), Call(name, process_set, False, {"splits": [splits]}))


def alltoall(array: Any, splits: Splits = None, *args: Any, **kwargs: Any) -> Union[Array, tuple[Array, Array]]:
    """Sends `splits[r]` rows to each rank r, or equally many, and returns the rows received; with
    `splits` also how many came from each rank."""
    rows, received = synchronize(alltoall_async(array, splits, *args, **kwargs))
    return rows if splits is None else (rows, received)


def reducescatter_async(
    array: Any,
    name: Name = None,
    op: int = Average,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a :func:`reducescatter`; returns the handle."""
    call = reduction(name, process_set, op, prescale_factor, postscale_factor)
    return _collectives.reducescatter.start(array_of(array), call)


def reducescatter(array: Any, *args: Any, **kwargs: Any) -> Array:
    """Reduces the ranks' arrays, of the same shape and type, and returns this rank's rows of the
    result. They are distributed evenly; the first ``rows % size`` ranks get one more."""
    return synchronize(reducescatter_async(array, *args, **kwargs))
