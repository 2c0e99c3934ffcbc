"""The collective operations of JAX's arrays."""

import functools
import operator
from collections.abc import Sequence
from typing import Any, Callable, Optional, TypeVar, cast

import numpy

from horovod.common import interface
from horovod.common.compression import NoneCompressor
from horovod.common.exceptions import HorovodRequestError
from horovod.common.interface import Average, ProcessSet, global_process_set
from horovod.jax import _kinds, _primitives
from horovod.jax._kinds import Kind, Settings
from horovod.jax._library import Primitive, jax

__all__ = [
    "allgather",
    "allgather_object",
    "allreduce",
    "alltoall",
    "barrier",
    "broadcast",
    "broadcast_object",
    "grouped_allreduce",
    "join",
    "reducescatter",
]

Name = Optional[str]
_Function = TypeVar("_Function", bound=Callable[..., Any])


def _of_tree(kind: Kind, tree: Any, settings: Settings, compression: Any = NoneCompressor) -> Any:
    """The tree of the results. An array by itself is an operation; the arrays of a tree are a group."""
    leaves, structure = jax.tree_util.tree_flatten(tree)
    if not leaves:
        return tree
    settings = settings._replace(is_group=not jax.tree_util.treedef_is_leaf(structure))
    if compression is NoneCompressor:
        return structure.unflatten(_primitives.bind(kind, leaves, settings))
    packed, contexts = zip(*[compression.compress(jax.numpy.asarray(leaf)) for leaf in leaves])
    results = _primitives.bind(kind, packed, settings)
    return structure.unflatten(compression.decompress(result, own) for result, own in zip(results, contexts))


def _known(what: str, value: Any, kind: Callable[[Any], Any]) -> Any:
    """A number as one of Python, which programs can contain. Raises HorovodRequestError for one that is traced,
    TypeError for what is not of the kind."""
    if isinstance(value, jax.core.Tracer):
        raise HorovodRequestError(f"{what} can't be a traced array: it must be known when the function is traced.")
    return kind(value)


def _reduction(name: Name, process_set: ProcessSet, op: int, prescale: Any, postscale: Any) -> Settings:
    prescale, postscale = _known("prescale_factor", prescale, float), _known("postscale_factor", postscale, float)
    return Settings(name, process_set, False, op, prescale, postscale)


def allreduce(
    tree: Any,
    name: Name = None,
    op: int = Average,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    compression: Any = NoneCompressor,
) -> Any:
    """Reduces the ranks' arrays, of the same shapes and types.

    Args:
      tree: an array, or any pytree of arrays, which are reduced as one group.
      name: of the operation, the same on all ranks.
      op: Average, Sum, Adasum, Min, Max or Product.
      prescale_factor, postscale_factor: what each array is multiplied by before and after; numbers that are
        known when a function is traced.
      process_set: the ranks that take part.
      compression: for the time of the operation; hvd.Compression has some.

    Returns the tree of the results. The gradient is the same reduction of the gradients.
    """
    settings = _reduction(name, process_set, op, prescale_factor, postscale_factor)
    return _of_tree(_kinds.allreduce, tree, settings, compression)


def grouped_allreduce(arrays: Sequence[Any], *args: Any, **kwargs: Any) -> list[Any]:
    """:func:`allreduce` of several arrays at once; returns the list of results."""
    return cast("list[Any]", allreduce(list(arrays), *args, **kwargs))


def allgather(tree: Any, name: Name = None, process_set: ProcessSet = global_process_set) -> Any:
    """Concatenates the ranks' arrays on the first dimension, in rank order; returns the tree of the
    results. Only that dimension may differ between ranks, and not within jit. The gradient is the
    average of the ranks' gradients of this rank's rows."""
    return _of_tree(_kinds.allgather, tree, Settings(name, process_set))


def broadcast(tree: Any, root_rank: int, name: Name = None, process_set: ProcessSet = global_process_set) -> Any:
    """Returns rank `root_rank`'s tree on all ranks; shapes and types are the same on all. `root_rank` is
    that of the world, whatever the process set. The gradient on the root is the average of the ranks'
    gradients, and zero elsewhere."""
    root = _known("root_rank", root_rank, operator.index)
    return _of_tree(_kinds.broadcast, tree, Settings(name, process_set, root_rank=root))


def alltoall(array: Any, splits: Any = None, name: Name = None, process_set: ProcessSet = global_process_set) -> Any:
    """Sends `splits[r]` rows to each rank r, or equally many, and returns the rows received; with
    `splits` also how many came from each rank, which can't be jitted. The gradient goes back the same
    way."""
    if isinstance(splits, jax.core.Tracer):
        raise HorovodRequestError("alltoall with splits can't be jitted: how many rows arrive is not known then.")
    counts = None if splits is None else _counts(splits)
    results = _primitives.bind(_kinds.alltoall, [array], Settings(name, process_set, splits=counts))
    return results[0] if splits is None else tuple(results)


def _counts(splits: Any) -> tuple[int, ...]:
    counts = numpy.asarray(splits)
    if counts.ndim != 1 or counts.dtype.kind not in "iu":
        raise ValueError("alltoall expects splits to be a vector of integers")
    return tuple(counts.tolist())


def reducescatter(
    tree: Any,
    name: Name = None,
    op: int = Average,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Reduces the ranks' arrays, of the same shapes and types, and returns this rank's rows of the
    results, as a tree. They are distributed evenly; the first ``rows % size`` ranks get one more. The
    gradients are gathered, and scaled as the arrays."""
    settings = _reduction(name, process_set, op, prescale_factor, postscale_factor)
    return _of_tree(_kinds.reducescatter, tree, settings)


# Operations whose values are no arrays of known shapes: within jit they would run once, when the
# function is traced.


def _refuse(what: str) -> None:
    raise HorovodRequestError(f"{what} can't be jitted: call it outside of jit.")


_anywhere = Primitive("horovod_outside")
_anywhere.def_impl(lambda what: None)
_anywhere.def_abstract_eval(_refuse)


def outside(function: _Function) -> _Function:
    """`function`, which refuses to be traced."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        _anywhere.bind(what=function.__name__)
        return function(*args, **kwargs)

    return cast(_Function, wrapper)


barrier = outside(interface.barrier)
join = outside(interface.join)
broadcast_object = outside(interface.broadcast_object)
allgather_object = outside(interface.allgather_object)
