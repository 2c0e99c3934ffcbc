"""The state of a training with torch: models, optimizers, samplers and plain values."""

import os
from collections.abc import Iterator
from typing import Any, Optional, Union

import torch

from horovod.elastic import reading
from horovod.elastic.handlers import StateHandler
from horovod.elastic.parts import PartsHandler
from horovod.elastic.state import ObjectState, State
from horovod.elastic.tensor_state import TensorState
from horovod.elastic.trees import mapped
from horovod.torch._loading import TREES
from horovod.torch.elastic._old_samplers import SamplerWatch
from horovod.torch.elastic.handlers import (
    ModelStateHandler,
    OptimizerStateHandler,
    SamplerStateHandler,
    StateDictHandler,
    get_handler_registry,
    handler_of,
    set_handler_registry,
)

__all__ = [
    "ModelStateHandler",
    "ObjectState",
    "OptimizerStateHandler",
    "SamplerStateHandler",
    "State",
    "StateDictHandler",
    "StateHandler",
    "TorchState",
    "get_handler_registry",
    "handler_of",
    "load_checkpoint",
    "set_handler_registry",
]


class TorchState(TensorState):
    """State of a training with torch: ``TorchState(model, optimizer, sampler=sampler, epoch=0, batch=0)``.

    All arguments are attributes of the state. A Module, Optimizer, ElasticSampler, ElasticIterableDataset, learning rate
    scheduler or GradScaler, any other object whose class has state_dict and load_state_dict (or a type in the handler
    registry), a tensor and a random generator are restored in place, also within lists, tuples and dicts. All other values are
    plain values and are copied deeply. A save is a real copy in host memory. restore gives the state exactly the values of
    the last save, and sets gradients to zero. sync gives all ranks rank 0's current state, all of the same moment.

    In an elastic job a commit is kept in memory of the host's agent and outlives the worker. If all workers die, their
    successors begin with the newest commit that one of them finds.

    With `checkpoint_dir`, rank 0 also writes commits to files there while training continues, and keeps the newest two. A
    job that finds files there begins with the newest complete one, so a job that has lost all its workers can be started
    again. Give all hosts the same folder, and let nobody else write to it: values other than numbers, strings, tensors,
    lists, tuples and dicts of them are pickled, so anybody who can write there can run code in the job.

    Args:
      model: a torch.nn.Module.
      optimizer: a torch.optim.Optimizer, distributed or not.
      checkpoint_dir: the folder for checkpoints, which is created if it is missing, or a URL for fsspec; None: no
        checkpoints.
      checkpoint_every: the minimum number of commits from one checkpoint to the next. While a file is being written, no other
        is begun.
      kwargs: further values, by their names; and two further options of checkpoints. checkpoint_keep: the number of newest
        checkpoints that are kept, 2 by default. checkpoint_best: "min NAME" or "max NAME" of a value; the checkpoint in which
        that number is best is kept, too, as best.hvd.

    Raises:
      OSError: `checkpoint_dir` can't be made or written to.
      ValueError: `checkpoint_every` is not a positive number; or a plain value holds a tensor or an object with a state of its
        own, now or later.

    Example:
      >>> import torch
      >>> import horovod.torch as hvd
      >>> model = torch.nn.Linear(2, 1)
      >>> state = hvd.elastic.TorchState(model, torch.optim.SGD(model.parameters(), lr=0.1), epoch=0)
      >>> state.commit()
      >>> state.epoch, model.bias.data[0] = 3, 100.0
      >>> state.restore()
      >>> state.epoch, model.bias.item() < 100
      (0, True)
    """

    def __init__(
        self,
        model: Optional[torch.nn.Module] = None,
        optimizer: Optional[torch.optim.Optimizer] = None,
        checkpoint_dir: Optional[str] = None,
        checkpoint_every: int = 1,
        **kwargs: Any,
    ) -> None:
        kwargs.update(model=model, optimizer=optimizer)
        super().__init__(TREES, handler_of, checkpoint_dir, checkpoint_every, **kwargs)
        self._samplers = SamplerWatch()
        self._samplers.look(self._all_parts())

    def commit(self) -> None:
        # Not in the reset: the function that trains may make its samplers anew after it.
        self._samplers.look(self._all_parts())
        super().commit()

    def restore(self) -> None:
        super().restore()
        self._drop_gradients()

    def _deep_copy(self, values: dict[str, object]) -> dict[str, object]:
        try:
            return super()._deep_copy(values)
        except RuntimeError:  # torch copies no tensor that is part of a graph, such as a loss
            return super()._deep_copy(mapped(values, _without_graph))

    def _all_parts(self) -> Iterator[Any]:
        for handler in self._handlers.values():
            yield handler.value
            if isinstance(handler, PartsHandler):
                yield from (part for part, _ in self._parts.parts_in(handler.value))

    def _drop_gradients(self) -> None:
        """Sets gradients to zero, so that the next backward() does not add to those of an interrupted step."""
        parameters: dict[int, torch.Tensor] = {}
        for value in self._all_parts():
            if isinstance(value, torch.nn.Module):
                parameters.update((id(p), p) for p in value.parameters())
            elif isinstance(value, torch.optim.Optimizer):
                groups = value.param_groups
                parameters.update((id(p), p) for group in groups for p in group["params"])
        for p in parameters.values():
            if p.grad is not None:
                p.grad.detach().zero_()


def _without_graph(value: object) -> object:
    return value.detach() if isinstance(value, torch.Tensor) and not value.is_leaf else value


def load_checkpoint(path: Union[str, "os.PathLike[str]"]) -> dict[str, Any]:
    """Returns what is in a checkpoint of a state, by the names of its values, without a job and without the state.

    Args:
      path: a .hvd file; or a folder or URL with checkpoints, of which the newest complete one is read.

    Returns:
      A dict: state dicts of models, optimizers and other parts, with tensors in host memory; plain values.

    Raises:
      FileNotFoundError: there is no checkpoint.
      ValueError: the file is damaged, or no checkpoint.
    """
    return reading.load(TREES, path)
