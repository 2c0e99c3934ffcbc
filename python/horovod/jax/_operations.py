"""The collectives on JAX's arrays."""

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
    """Runs a collective on a tree and returns the tree of the results. A single array is one operation; the arrays of a tree are
    a group.
    """
    leaves, structure = jax.tree_util.tree_flatten(tree)
    values = [leaf for leaf in leaves if not _is_nothing(leaf)]
    if not values:
        return tree
    settings = settings._replace(is_group=not jax.tree_util.treedef_is_leaf(structure))
    if compression is NoneCompressor:
        results = iter(_primitives.bind(kind, values, settings))
    else:
        packed, contexts = zip(*[compression.compress(jax.numpy.asarray(value)) for value in values])
        reduced = _primitives.bind(kind, packed, settings)
        results = iter([compression.decompress(result, own) for result, own in zip(reduced, contexts)])
    return structure.unflatten(leaf if _is_nothing(leaf) else next(results) for leaf in leaves)


def _is_nothing(leaf: Any) -> bool:
    """Returns whether the leaf is what JAX has for the gradient of integers: an array without elements, whatever its shape."""
    return bool(getattr(leaf, "dtype", None) == jax.dtypes.float0)


def _known(what: str, value: Any, kind: Callable[[Any], Any]) -> Any:
    """Returns a number as a Python number, which programs can contain. Raises HorovodRequestError if it is traced, TypeError if
    it is not of the kind.
    """
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
    """Reduces the ranks' arrays. The gradient is the same reduction of the gradients.

    Args:
      tree: an array, or a pytree of arrays, which are reduced as one group. Shapes and dtypes are the same on all ranks.
        Complex arrays are reduced by hvd.Sum and hvd.Average only. JAX's gradients of integers (float0) are returned unchanged.
      name: the operation's name, the same on all ranks.
      op: hvd.Average (the default), hvd.Sum, hvd.Adasum, hvd.Min, hvd.Max or hvd.Product. Adasum: Maleki et al., Scaling
        Distributed Training with Adaptive Summation, 2020.
      prescale_factor: factor by which arrays are multiplied before the reduction; it must be known when a function is traced.
      postscale_factor: factor by which results are multiplied after it; it must be known when a function is traced.
      process_set: the ranks that take part; hvd.Average divides by their number.
      compression: how arrays are compressed for the reduction, e.g. hvd.Compression.fp16.

    Returns:
      The tree of the results.

    Example:
      >>> import jax.numpy as jnp
      >>> hvd.allreduce(jnp.array([1.0, 3.0]), op=hvd.Sum).tolist()
      [1.0, 3.0]
    """
    settings = _reduction(name, process_set, op, prescale_factor, postscale_factor)
    return _of_tree(_kinds.allreduce, tree, settings, compression)


def grouped_allreduce(arrays: Sequence[Any], *args: Any, **kwargs: Any) -> list[Any]:
    """Reduces several arrays as one operation.

    Args:
      arrays: the arrays. They may differ in shape and dtype.
      args, kwargs: further arguments, as for :func:`allreduce`.

    Returns:
      The list of the results.
    """
    return cast("list[Any]", allreduce(list(arrays), *args, **kwargs))


def allgather(tree: Any, name: Name = None, process_set: ProcessSet = global_process_set) -> Any:
    """Concatenates the ranks' arrays on the first dimension, in rank order. The gradient is the average of the ranks' gradients
    of this rank's rows.

    Args:
      tree: an array, or a pytree of arrays, with at least one dimension. Only the first dimension may differ between ranks;
        inside jit no dimension may.
      name: the operation's name, the same on all ranks.
      process_set: the ranks that take part.

    Returns:
      The tree of the results.

    Example:
      >>> import jax.numpy as jnp
      >>> hvd.allgather(jnp.array([1, 2])).tolist()
      [1, 2]
    """
    return _of_tree(_kinds.allgather, tree, Settings(name, process_set))


def broadcast(tree: Any, root_rank: int, name: Name = None, process_set: ProcessSet = global_process_set) -> Any:
    """Returns rank `root_rank`'s arrays on all ranks. The gradient on the root is the average of the ranks' gradients; on other
    ranks it is zero.

    Args:
      tree: an array, or a pytree of arrays. Shapes and dtypes are the same on all ranks.
      root_rank: the root's rank in the world, also with a process set.
      name: the operation's name, the same on all ranks.
      process_set: the ranks that take part.

    Returns:
      The tree of the results.

    Example:
      >>> import jax.numpy as jnp
      >>> hvd.broadcast(jnp.array([1.5]), root_rank=0).tolist()
      [1.5]
    """
    root = _known("root_rank", root_rank, operator.index)
    return _of_tree(_kinds.broadcast, tree, Settings(name, process_set, root_rank=root))


def alltoall(array: Any, splits: Any = None, name: Name = None, process_set: ProcessSet = global_process_set) -> Any:
    """Sends rows of an array to all ranks and returns the rows received. The gradient's rows return the same way.

    Args:
      array: an array with at least one dimension. Only the first dimension may differ between ranks.
      splits: how many rows go to each rank, in rank order; None: the same number to each. Can't be given inside jit.
      name: the operation's name, the same on all ranks.
      process_set: the ranks that take part.

    Returns:
      The rows received, in rank order. If `splits` is given, a pair of these and how many rows came from each rank.

    Example:
      >>> import jax.numpy as jnp
      >>> hvd.alltoall(jnp.array([5, 6])).tolist()
      [5, 6]
    """
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
    """Reduces the ranks' arrays and returns this rank's rows of the results. The gradients are gathered, and scaled as the
    arrays.

    The rows are distributed evenly; of n ranks the first ``rows % n`` get one row more.

    Args:
      tree: an array, or a pytree of arrays, with at least one dimension. Shapes and dtypes are the same on all ranks.
      name, op, prescale_factor, postscale_factor, process_set: as for :func:`allreduce`; hvd.Adasum is not supported.

    Returns:
      The tree of this rank's rows.

    Example:
      >>> import jax.numpy as jnp
      >>> hvd.reducescatter(jnp.array([[1.0, 2.0]]), op=hvd.Sum).tolist()
      [[1.0, 2.0]]
    """
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
    """Returns `function`, made to raise HorovodRequestError if it is called inside jit."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        _anywhere.bind(what=function.__name__)
        return function(*args, **kwargs)

    return cast(_Function, wrapper)


barrier = outside(interface.barrier)
join = outside(interface.join)
broadcast_object = outside(interface.broadcast_object)
allgather_object = outside(interface.allgather_object)
