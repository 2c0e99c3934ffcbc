"""The state of a training with torch: models, optimizers, samplers and plain values."""

import copy
from typing import Any, Dict, List, Optional, Tuple, Type

import torch

from horovod.common.elastic import ObjectState as _ObjectState
from horovod.common.elastic import State  # noqa: F401 - hvd.elastic.State
from horovod.torch.elastic.sampler import ElasticSampler
from horovod.torch.functions import (
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
)
from horovod.torch.mpi_ops import rank


def _copied(value: Any, spare: Any = None) -> Any:
    """A copy of `value` in host memory, tensors in the memory of `spare` (an older copy) where they
    fit."""
    if isinstance(value, torch.Tensor):
        fits = (
            isinstance(spare, torch.Tensor)
            and spare.shape == value.shape
            and spare.dtype == value.dtype
            and spare.layout == value.layout == torch.strided
        )
        if fits:
            return spare.copy_(value.detach())
        return value.detach().to("cpu", copy=True)
    if isinstance(value, dict):
        spare = spare if isinstance(spare, dict) else {}
        return {key: _copied(item, spare.get(key)) for key, item in value.items()}
    if type(value) in (list, tuple):
        spare = (
            spare
            if type(spare) is type(value) and len(spare) == len(value)
            else [None] * len(value)
        )
        return type(value)(_copied(item, old) for item, old in zip(value, spare))
    return copy.deepcopy(value)


class StateHandler:
    """Knows how to save, restore and synchronize one kind of value."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def save(self) -> None:
        """Copies the value's state."""
        raise NotImplementedError

    def restore(self) -> None:
        """Makes the value's state what it was at the last save."""
        raise NotImplementedError

    def sync(self) -> None:
        """Makes all ranks' values what rank 0's is."""
        raise NotImplementedError

    def set_value(self, value: Any) -> None:
        """Handles another value from now on."""
        self.value = value
        self.save()


class _StateDictHandler(StateHandler):
    """For values that have state_dict and load_state_dict. Copies are in host memory; two buffers
    take turns, so that a save which is interrupted leaves the one before intact."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self._saved: Any = None
        self._spare: Any = None
        self.save()

    def save(self) -> None:
        copied = _copied(self.value.state_dict(), self._spare)
        self._saved, self._spare = copied, self._saved

    def restore(self) -> None:
        # A copy: some load_state_dict keep what they are given.
        self.value.load_state_dict(_copied(self._saved))


class ModelStateHandler(_StateDictHandler):
    """For torch.nn.Module."""

    def sync(self) -> None:
        tensors = {
            name: value
            for name, value in self.value.state_dict().items()
            if isinstance(value, torch.Tensor)
        }
        broadcast_parameters(tensors, root_rank=0)


class OptimizerStateHandler(_StateDictHandler):
    """For torch.optim.Optimizer, distributed or not."""

    def sync(self) -> None:
        broadcast_optimizer_state(self.value, root_rank=0)


class SamplerStateHandler(_StateDictHandler):
    """For ElasticSampler."""

    def sync(self) -> None:
        self.value.load_state_dict(broadcast_object(self.value.state_dict(), root_rank=0))


Registry = List[Tuple[type, Type[StateHandler]]]

_handler_registry: Registry = [
    (torch.nn.Module, ModelStateHandler),
    (torch.optim.Optimizer, OptimizerStateHandler),
    (ElasticSampler, SamplerStateHandler),
]


def get_handler_registry() -> Registry:
    """The pairs of type and handler class that :class:`TorchState` uses; the first that fits a
    value counts."""
    return _handler_registry


def set_handler_registry(registry: Registry) -> None:
    """Replaces the pairs of type and handler class, e.g. to handle a type of one's own."""
    global _handler_registry
    _handler_registry = registry


def _handler_of(value: Any) -> Optional[StateHandler]:
    for handled, handler_class in _handler_registry:
        if isinstance(value, handled):
            return handler_class(value)
    return None


class ObjectState(_ObjectState):
    """State of plain Python values: ``ObjectState(epoch=0)`` has an attribute ``epoch``."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(broadcast_object, rank, **kwargs)


class TorchState(ObjectState):
    """State of a training: ``TorchState(model, optimizer, sampler=sampler, epoch=0, batch=0)``.

    Arguments that are a Module, Optimizer or ElasticSampler (or of a type in the handler registry)
    are saved by their state dict; all others are plain values, copied deeply. All are attributes of
    the state. A save is a real copy in host memory; restore gives exactly what the last save saw;
    sync gives all ranks what rank 0 has now.

    Args:
      model: a torch.nn.Module.
      optimizer: a torch.optim.Optimizer, distributed or not.
      kwargs: any further values.
    """

    def __init__(
        self,
        model: Optional[torch.nn.Module] = None,
        optimizer: Optional[torch.optim.Optimizer] = None,
        **kwargs: Any,
    ) -> None:
        kwargs.update(model=model, optimizer=optimizer)
        handlers: Dict[str, StateHandler] = {}
        for name, value in list(kwargs.items()):
            handler = _handler_of(value)
            if handler is not None:
                handlers[name] = handler
                kwargs.pop(name)
        vars(self)["_handlers"] = handlers
        for name, handler in handlers.items():
            vars(self)[name] = handler.value
        super().__init__(**kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        handler = self._handlers.get(name)
        if handler is not None:
            handler.set_value(value)

    def save(self) -> None:
        super().save()
        for handler in self._handlers.values():
            handler.save()

    def restore(self) -> None:
        for handler in self._handlers.values():
            handler.restore()
        super().restore()

    def sync(self) -> None:
        for handler in self._handlers.values():
            handler.sync()
        super().sync()  # saves all
