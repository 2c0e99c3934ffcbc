"""The collectives. They take dense NDArrays of MXNet in host memory, of uint8, int8, int32, int64,
bool, float16, bfloat16, float32 or float64, and have been done when they return. What is recorded by
``mxnet.autograd`` ends there: results are constants. `priority` is accepted and makes no difference.

All raise ValueError for bad arguments (TypeError for what is no process set), HorovodRequestError if
the ranks' requests do not match, and HorovodInternalError if Horovod is not initialized or the world
is broken.
"""

from collections.abc import Sequence
from typing import Any, Optional, Union

from mxnet.ndarray import NDArray as Array

from horovod.common._essentials import *
from horovod.common.collective import Call, reduction
from horovod.common.collective_kinds import Collectives
from horovod.common.ops import Average
from horovod.common.process_sets import ProcessSet, global_process_set
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
_reduction_of = get_average_backwards_compatibility_fun()


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
    return reduction(name, process_set, _reduction_of(op, average), prescale_factor, postscale_factor, in_place)


def allreduce(tensor: Array, *args: Any, **kwargs: Any) -> Array:
    """Reduces the ranks' arrays, of the same shape and type, and returns the result.

    Further arguments: `average` (deprecated), `name`, `priority`, `prescale_factor`,
    `postscale_factor`, `process_set` and `op`: Average (the default), Sum, Min, Max, Product or Adasum.
    """
    return _collectives.allreduce.run(tensor, _allreduce_call(False, *args, **kwargs))


def allreduce_(tensor: Array, *args: Any, **kwargs: Any) -> Array:
    """:func:`allreduce` in place; returns `tensor`."""
    return _collectives.allreduce.run(tensor, _allreduce_call(True, *args, **kwargs))


def grouped_allreduce(tensors: Sequence[Array], *args: Any, **kwargs: Any) -> Sequence[Array]:
    """:func:`allreduce` of several arrays at once, of any types; returns the list of results."""
    call = _allreduce_call(False, *args, **kwargs)
    return list(_collectives.allreduce.run_group(tensors, call)) if tensors else tensors


def grouped_allreduce_(tensors: Sequence[Array], *args: Any, **kwargs: Any) -> Sequence[Array]:
    """:func:`grouped_allreduce` in place; returns `tensors`."""
    call = _allreduce_call(True, *args, **kwargs)
    if tensors:
        _collectives.allreduce.run_group(tensors, call)
    return tensors


def allgather(
    tensor: Array, name: Name = None, priority: int = 0, process_set: ProcessSet = global_process_set
) -> Array:
    """Concatenates the ranks' arrays on the first dimension, in rank order. Only that dimension may
    differ between ranks. Raises IndexError for an array without dimensions."""
    return _collectives.allgather.run(tensor, Call(name, process_set))


def grouped_allgather(
    tensors: Sequence[Array], name: Name = None, priority: int = 0, process_set: ProcessSet = global_process_set
) -> list[Array]:
    """:func:`allgather` of several arrays at once; returns the list of results."""
    return list(_collectives.allgather.run_group(tensors, Call(name, process_set)))


def broadcast(
    tensor: Array, root_rank: int, name: Name = None, priority: int = 0, process_set: ProcessSet = global_process_set
) -> Array:
    """Returns rank `root_rank`'s array on all ranks; shape and type are the same on all."""
    return _collectives.broadcast.run(tensor, Call(name, process_set, False, {"root_rank": root_rank}))


def broadcast_(
    tensor: Array, root_rank: int, name: Name = None, priority: int = 0, process_set: ProcessSet = global_process_set
) -> Array:
    """:func:`broadcast` in place; returns `tensor`."""
    return _collectives.broadcast.run(tensor, Call(name, process_set, True, {"root_rank": root_rank}))


def alltoall(
    tensor: Array,
    splits: Any = None,
    name: Name = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> Union[Array, tuple[Array, Array]]:
    """Sends `splits[r]` rows to each rank r, or equally many, and returns the rows received; with
    `splits` (a list, or an array of int32) also how many came from each rank, as int32."""
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
    """Reduces the ranks' arrays, of the same shape and type, and returns this rank's rows of the
    result. They are distributed evenly; the first ``rows % size`` ranks get one more.

    Further arguments: `op`, `name`, `priority`, `process_set`, `prescale_factor`, `postscale_factor`.
    """
    return _collectives.reducescatter.run(tensor, _reducescatter_call(*args, **kwargs))


def grouped_reducescatter(tensors: Sequence[Array], *args: Any, **kwargs: Any) -> list[Array]:
    """:func:`reducescatter` of several arrays at once; returns the list of results."""
    return list(_collectives.reducescatter.run_group(tensors, _reducescatter_call(*args, **kwargs)))
