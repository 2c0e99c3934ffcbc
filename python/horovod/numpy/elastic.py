"""Elastic training with numpy arrays: :func:`run` and :class:`State`."""

import os
from typing import Any, Optional, Union

import numpy

from horovod.elastic import handlers, reading
from horovod.elastic.cursor import JobCursor
from horovod.elastic.iterable import ElasticIterable
from horovod.elastic.loop import run
from horovod.elastic.sampler import ElasticSampler
from horovod.elastic.tensor_state import TensorState
from horovod.elastic.trees import Trees
from horovod.numpy import _arrays

__all__ = ["ArrayHandler", "ElasticIterable", "ElasticSampler", "SamplerHandler", "State", "load_checkpoint", "run"]

_TREES = Trees(_arrays)


class ArrayHandler(handlers.StateDictHandler):
    """Handler of arrays. Restore and sync overwrite the elements of the array in place. The script may put another array in its
    place, as in ``state.w = state.w - g``; the last save stays.
    """

    trees, saves_new_value = _TREES, False

    def set_value(self, value: Any) -> None:
        if _arrays.kind(value) != _arrays.kind(self.value):
            raise handlers.UnlikeError(f"it has to stay an array of {self.value.dtype}, shape {self.value.shape}.")
        super().set_value(value)

    def state_dict(self) -> numpy.ndarray:
        return self.value

    own_tensors = state_dict  # the array itself may be overwritten

    def load(self, saved: numpy.ndarray) -> None:
        _arrays.assign(self.value, saved)

    take = load  # type: ignore[assignment]  # its argument has another name


class SamplerHandler(handlers.SamplerStateHandler):
    """Handler of ElasticSampler and ElasticIterable."""

    trees = _TREES


def _handler_of(value: Any) -> Optional[handlers.StateHandler]:
    if isinstance(value, numpy.ndarray):
        if _arrays.kind(value) is None or not value.flags.writeable:
            raise ValueError(f"{type(value).__name__} of {value.dtype} in a state: it can't be overwritten in place.")
        return ArrayHandler(value)
    return SamplerHandler(value) if isinstance(value, JobCursor) else None


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
