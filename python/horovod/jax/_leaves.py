"""Conversion of pytrees to the form that elastic states and broadcasts support: lists of numpy arrays and of other values."""

from typing import Any

import numpy

from horovod.elastic.trees import Trees
from horovod.jax import _host
from horovod.jax._library import jax

TREES = Trees(_host)

Leaves = dict[str, list[Any]]  # "arrays", random keys among them, and "others"


def is_array(leaf: object) -> bool:
    return isinstance(leaf, (jax.Array, numpy.ndarray))


def leaves_of(tree: Any) -> Leaves:
    """Returns the leaves. Arrays are read-only and in host memory, without a copy if they are there already."""
    leaves = jax.tree_util.tree_leaves(tree)
    arrays = [_read_only(_numbers(leaf)) for leaf in leaves if is_array(leaf)]
    return {"arrays": arrays, "others": [leaf for leaf in leaves if not is_array(leaf)]}


def with_leaves(tree: Any, new: Leaves) -> Any:
    """Returns a tree like `tree` with these leaves, whose memory it may take over. Raises ValueError if the leaves do not fit the
    tree.
    """
    leaves, structure = jax.tree_util.tree_flatten(tree)
    count = sum(map(is_array, leaves))
    if (count, len(leaves) - count) != (len(new["arrays"]), len(new["others"])):
        raise ValueError("It is a pytree of another structure.")
    arrays, others = iter(new["arrays"]), iter(new["others"])
    return structure.unflatten(_like(leaf, next(arrays)) if is_array(leaf) else next(others) for leaf in leaves)


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and bool(jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def _numbers(array: Any) -> Any:
    """Returns the array, or the array that a random key is made of."""
    return jax.random.key_data(array) if _is_key(array) else array


def _read_only(array: Any) -> numpy.ndarray:
    view: numpy.ndarray = _host.from_jax(array).view()
    view.flags.writeable = False
    return view


def _like(old: Any, values: numpy.ndarray) -> Any:
    """Returns an array of the kind of `old`, in its place, with these values."""
    if isinstance(old, numpy.ndarray):
        return values
    new = _host.to_jax(values, _numbers(old))
    return jax.random.wrap_key_data(new, impl=jax.random.key_impl(old)) if _is_key(old) else new
