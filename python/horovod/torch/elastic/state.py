"""The state of a training with torch: models, optimizers, samplers and plain values."""

from typing import Any, Optional

import torch

from horovod.elastic.handlers import StateHandler
from horovod.elastic.state import State
from horovod.elastic.tensor_state import ObjectState, TensorState
from horovod.torch._loading import TREES
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
    "set_handler_registry",
]


class TorchState(TensorState):
    """State of a training: ``TorchState(model, optimizer, sampler=sampler, epoch=0, batch=0)``.

    Arguments that are a Module, Optimizer, ElasticSampler, ElasticIterableDataset, learning rate
    scheduler or GradScaler (or of a type in the handler registry) are saved by their state dict;
    all others are plain values, copied deeply. All are attributes of the state. A save is a real
    copy in host memory; restore gives exactly what the last save saw, and gradients of zero; sync
    gives all ranks what rank 0 has now, all of it of the same moment.

    In an elastic job a commit lies in memory of the host's agent and outlives the worker. If all
    workers die, those that take their places begin with the newest commit that one of them finds.

    With `checkpoint_dir`, rank 0 also writes every so many commits to a file there while the
    training goes on, and keeps the newest two. A job that starts with files there begins with the
    newest one that is whole, so a job whose workers are all gone can be started again. Give all
    hosts the same folder, and nobody else access to it: values other than numbers, strings,
    tensors, lists, tuples and dicts of them are pickled, so whoever can write there can run code in
    the job.

    Args:
      model: a torch.nn.Module.
      optimizer: a torch.optim.Optimizer, distributed or not.
      checkpoint_dir: the folder for checkpoints, made if there is none, or a URL that fsspec knows; None for none.
      checkpoint_every: how many commits apart they are, at least. One that is still being written
        delays the next.
      kwargs: any further values.

    Raises:
      OSError: `checkpoint_dir` can't be made.
      ValueError: `checkpoint_every` is not a positive number.
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

    def restore(self) -> None:
        super().restore()
        self._drop_gradients()

    def _drop_gradients(self) -> None:
        """What a step that was broken off has left must not be added to."""
        parameters: dict[int, torch.Tensor] = {}
        for handler in self._handlers.values():
            value = handler.value
            if isinstance(value, torch.nn.Module):
                parameters.update((id(p), p) for p in value.parameters())
            elif isinstance(value, torch.optim.Optimizer):
                groups = value.param_groups
                parameters.update((id(p), p) for group in groups for p in group["params"])
        for p in parameters.values():
            if p.grad is not None:
                p.grad.detach().zero_()
