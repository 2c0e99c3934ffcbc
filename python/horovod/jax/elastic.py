"""Elastic training with JAX: :func:`run` and :class:`JaxState`."""

import os
from collections.abc import Iterator
from typing import Any, Optional, Union

import numpy

from horovod.elastic import handlers, reading
from horovod.elastic.cursor import JobCursor
from horovod.elastic.iterable import ElasticIterable
from horovod.elastic.loop import run
from horovod.elastic.parts import has_own_state, misplaced
from horovod.elastic.sampler import ElasticSampler
from horovod.elastic.tensor_state import TensorState
from horovod.jax import _host, _leaves
from horovod.jax._library import jax

__all__ = ["ElasticIterable", "ElasticSampler", "JaxState", "SamplerHandler", "TreeHandler", "load_checkpoint", "run"]


class TreeHandler(handlers.StateDictHandler):
    """Handler of pytrees with arrays. Arrays can't be overwritten, so restore and sync make another tree. A tree that is
    assigned, as after each step, must have the same structure, shapes and dtypes; the last save stays then.
    """

    trees, saves_new_value, by_value = _leaves.TREES, False, True

    def set_value(self, value: Any) -> None:
        _check_same(self.value, value)
        super().set_value(value)

    def state_dict(self) -> _leaves.Leaves:
        return _leaves.leaves_of(self.value)

    own_tensors = state_dict

    def replicated(self, tree: _leaves.Leaves) -> Iterator[tuple[str, str, numpy.ndarray]]:
        # Nothing tells parameters from statistics and random keys. Those that differ do so from the first commit on.
        places = [place for place, leaf in _places(self.value).items() if _leaves.is_array(leaf)]
        for place, array in zip(places, tree["arrays"]):
            yield "arrays", place, array

    def load(self, saved: _leaves.Leaves) -> None:
        self.take({"arrays": [_copied(array) for array in saved["arrays"]], "others": saved["others"]})

    def take(self, state: _leaves.Leaves) -> None:
        self.value = _leaves.with_leaves(self.value, state)


class SamplerHandler(handlers.SamplerStateHandler):
    """Handler of ElasticSampler and ElasticIterable."""

    trees = _leaves.TREES


class JaxState(TensorState):
    """State of a training with JAX: ``JaxState(params=params, opt_state=opt_state, sampler=sampler, epoch=0)`` has these
    attributes.

    Pytrees with arrays, random keys among them, are saved in host memory and keep their structure, shapes and dtypes. Leaves
    that are not arrays, and all other values, must be picklable. After restore and sync the attributes are other trees: read
    them from the state, not from earlier variables. For checkpoints see :class:`horovod.torch.elastic.TorchState`.

    Args:
      checkpoint_dir: the folder for checkpoints, or a URL for fsspec; None: no checkpoints.
      checkpoint_every: the minimum number of commits from one checkpoint to the next.
      values: the values, by their names.

    Raises:
      ValueError: later, when a tree is replaced by one of another structure, or with other shapes or dtypes.

    Example:
      >>> import jax.numpy as jnp
      >>> import horovod.jax as hvd
      >>> state = hvd.elastic.JaxState(params={"w": jnp.zeros(2)}, epoch=0)
      >>> state.commit()
      >>> state.params = {"w": jnp.ones(2)}
      >>> state.restore()
      >>> state.params["w"].tolist()
      [0.0, 0.0]
    """

    def __init__(self, checkpoint_dir: Optional[str] = None, checkpoint_every: int = 1, **values: Any) -> None:
        super().__init__(_leaves.TREES, _handler_of, checkpoint_dir, checkpoint_every, **values)


def _handler_of(value: object) -> Optional[handlers.StateHandler]:
    if isinstance(value, JobCursor):
        return SamplerHandler(value)
    if not any(map(_leaves.is_array, jax.tree_util.tree_leaves(value))):
        return None
    for place, leaf in _places(value).items():
        if has_own_state(leaf):
            raise ValueError(misplaced(leaf, f"A pytree with arrays: its leaf {place}"))
    return TreeHandler(value)


def _copied(array: numpy.ndarray) -> numpy.ndarray:
    copy, _ = _host.empty_like(array)
    _host.assign(copy, array)
    return copy


def _kind(leaf: Any) -> str:
    return f"{leaf.dtype}{list(leaf.shape)}" if _leaves.is_array(leaf) else "no array"


def _check_same(before: Any, now: Any) -> None:
    """Raises UnlikeError if the trees differ in structure, shapes or dtypes."""
    if jax.tree_util.tree_structure(before) != jax.tree_util.tree_structure(now):
        raise handlers.UnlikeError(f"it has to stay a pytree of the same structure{_difference(before, now)}.")
    for (place, old), new in zip(_places(before).items(), jax.tree_util.tree_leaves(now)):
        if _kind(old) != _kind(new):
            raise handlers.UnlikeError(
                f"it has to stay a pytree of the same shapes and types: {place} was {_kind(old)}, is {_kind(new)}."
            )


def _places(tree: Any) -> dict[str, Any]:
    """Returns the leaves by their paths."""
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]}


def _difference(before: Any, now: Any) -> str:
    """Returns a text about the first leaf that only one of the trees has; "" if there is none."""
    old, new = _places(before), _places(now)
    for place in (*old, *new):
        if place not in old or place not in new:
            return f": {place or 'a single leaf'} is {'new' if place in new else 'missing'}"
    return ""


def load_checkpoint(path: Union[str, "os.PathLike[str]"]) -> dict[str, Any]:
    """Returns what is in a checkpoint of a state, by the names of its values, without a job and without the state.

    Args:
      path: a .hvd file; or a folder or URL with checkpoints, of which the newest complete one is read.

    Returns:
      A dict: for each pytree with arrays its leaves, "arrays" and "others"; plain values.

    Raises:
      FileNotFoundError: there is no checkpoint.
      ValueError: the file is damaged, or no checkpoint.
    """
    return reading.load(_leaves.TREES, path)
