"""Elastic training with numpy arrays: :func:`run` and :class:`State`."""

import os
from typing import Any, Optional, Union

import numpy

from horovod.common.tensors import new
from horovod.elastic import handlers, reading
from horovod.elastic.cursor import JobCursor
from horovod.elastic.iterable import ElasticIterable
from horovod.elastic.loop import run
from horovod.elastic.parts import has_own_state
from horovod.elastic.sampler import ElasticSampler
from horovod.elastic.tensor_state import TensorState
from horovod.elastic.trees import Trees, is_dict
from horovod.numpy import _arrays
from horovod.numpy._device_arrays import library_of

__all__ = ["ArrayHandler", "ElasticIterable", "ElasticSampler", "SamplerHandler", "State", "load_checkpoint", "run"]

_TREES = Trees(_arrays)


class ArrayHandler(handlers.StateDictHandler):
    """Handler of arrays. Restore and sync overwrite the elements of the array in place. The script may put another array in its
    place, as in ``state.w = state.w - g``; the last save stays.
    """

    trees, saves_new_value = _TREES, False

    def set_value(self, value: object) -> None:
        if _arrays.kind(value) != _arrays.kind(self.value):
            raise handlers.UnlikeError(
                f"it has to stay an array of {self.value.dtype}, shape {tuple(self.value.shape)}."
            )
        super().set_value(value)

    value: numpy.ndarray

    def state_dict(self) -> numpy.ndarray:
        return self.value

    own_tensors = state_dict  # the array itself may be overwritten

    def load(self, saved: numpy.ndarray) -> None:
        _arrays.assign(self.value, saved)

    take = load  # type: ignore[assignment]  # its argument has another name


class ObjectHandler(handlers.StateDictHandler):
    """Handler of objects that have state_dict and load_state_dict. What they have in a GPU's memory is restored from arrays there."""

    trees = _TREES

    def load(self, saved: Any) -> None:
        self.value.load_state_dict(_in_place_of(self.value.state_dict(), saved))


def _in_place_of(own: Any, saved: Any) -> object:
    """Returns a copy of `saved` whose arrays are where those of `own` are."""
    if is_dict(saved):
        own = own if is_dict(own) else {}
        return type(saved)((key, _in_place_of(own.get(key), item)) for key, item in saved.items())
    if type(saved) in (list, tuple):
        own = [*own] if type(own) is type(saved) else []
        own += [None] * (len(saved) - len(own))
        return type(saved)(_in_place_of(*pair) for pair in zip(own, saved))
    kind = _arrays.kind(saved)
    if kind is None or library_of(own) is None:
        return _TREES.copied(saved)
    copy = new(_arrays, kind, own)
    _arrays.assign(copy, saved)
    return copy


class SamplerHandler(handlers.SamplerStateHandler):
    """Handler of ElasticSampler and ElasticIterable."""

    trees = _TREES


def _handler_of(value: Any) -> Optional[handlers.StateHandler]:
    library = library_of(value)
    if isinstance(value, numpy.ndarray) or library is not None:
        is_writable = value.flags.writeable if library is None else library.view(value).is_writable
        cannot = f"{type(value).__name__} of {value.dtype} can't be overwritten in place"
        if _arrays.kind(value) is None:
            raise ValueError(f"{cannot}: give the state a plain array of numbers")
        if not is_writable:
            raise ValueError(f"{cannot}, because it is read-only: give the state a copy")
        return ArrayHandler(value)
    if isinstance(value, JobCursor):
        return SamplerHandler(value)
    return ObjectHandler(value) if has_own_state(value) else None


class State(TensorState):
    """State of a training with numpy arrays: ``State(weights=weights, sampler=sampler, epoch=0)`` has these attributes.

    Arrays, and objects whose class has state_dict and load_state_dict, are restored and synchronized in place, also within
    lists, tuples and dicts. All other values must be picklable. For checkpoints see
    :class:`horovod.torch.elastic.TorchState`.

    Args:
      checkpoint_dir: the folder for checkpoints, or a URL for fsspec; None: no checkpoints.
      checkpoint_every: the minimum number of commits from one checkpoint to the next.
      values: the values, by their names.

    Raises:
      ValueError: an array is read-only or of an unsupported dtype; or, later, an array is replaced by one of another shape or
        dtype.

    Example:
      >>> import numpy as np
      >>> from horovod.numpy.elastic import State
      >>> state = State(weights=np.zeros(2), epoch=0)
      >>> state.commit()
      >>> state.weights += 1
      >>> state.restore()
      >>> state.weights
      array([0., 0.])
    """

    def __init__(self, checkpoint_dir: Optional[str] = None, checkpoint_every: int = 1, **values: Any) -> None:
        super().__init__(_TREES, _handler_of, checkpoint_dir, checkpoint_every, **values)


def load_checkpoint(path: Union[str, "os.PathLike[str]"]) -> dict[str, Any]:
    """Returns what is in a checkpoint of a state, by the names of its values, without a job and without the state.

    Args:
      path: a .hvd file; or a folder or URL with checkpoints, of which the newest complete one is read.

    Returns:
      A dict: arrays, and plain values.

    Raises:
      FileNotFoundError: there is no checkpoint.
      ValueError: the file is damaged, or no checkpoint.
    """
    return reading.load(_TREES, path)
