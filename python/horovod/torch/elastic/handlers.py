"""Handlers of torch's kinds of values in a state."""

import itertools
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Optional

import torch
from torch.utils.data.distributed import DistributedSampler

from horovod.elastic import handlers
from horovod.elastic.cursor import JobCursor
from horovod.elastic.handlers import StateHandler
from horovod.elastic.parts import has_own_state, refuse_copies
from horovod.elastic.trees import leaves_of
from horovod.torch import _loading
from horovod.torch._gradient_optimizer import GradientOptimizer
from horovod.torch._loading import TREES
from horovod.torch._tensors import check_has_memory
from horovod.torch._wrapped_optimizer import WrappedOptimizer


class StateDictHandler(handlers.StateDictHandler):
    """Handler of values that have state_dict and load_state_dict."""

    trees = TREES


class SamplerStateHandler(handlers.SamplerStateHandler):
    """Handler of ElasticSampler and ElasticIterableDataset."""

    trees = TREES


class ModelStateHandler(StateDictHandler):
    """Handler of torch.nn.Module."""

    value: torch.nn.Module

    def __init__(self, value: torch.nn.Module) -> None:
        for name, tensor in itertools.chain(value.named_parameters(), value.named_buffers()):
            check_has_memory(tensor, name, "TorchState")
        super().__init__(value)

    def state_dict(self) -> Any:
        state_dict = self.value.state_dict()
        # The versions of the state's layout, which modules read when they load it.
        self._metadata = getattr(state_dict, "_metadata", {})
        return state_dict

    def load(self, saved: Any) -> None:
        # All tensors are copied into the model's own at once; load_state_dict then only copies what does not fit there.
        self.take(self.trees.copied(saved, self.own_tensors()))

    def replicated(self, tree: Any) -> Iterator[tuple[str, str, torch.Tensor]]:
        names = {name for name, _ in self.value.named_parameters()}
        for name, tensor in tree.items():
            if isinstance(tensor, torch.nn.Parameter) or (name in names and isinstance(tensor, torch.Tensor)):
                yield "parameters", f".{name}", tensor

    def own_tensors(self) -> Any:
        self._metadata = getattr(self.value.state_dict(), "_metadata", {})
        return _loading.tensors_of(self.value)

    def take(self, state: Any) -> None:
        state_dict: Any = OrderedDict(state)
        state_dict._metadata = self._metadata
        self.value.load_state_dict(state_dict)


class OptimizerStateHandler(StateDictHandler):
    """Handler of torch.optim.Optimizer, distributed or not."""

    value: torch.optim.Optimizer

    def __init__(self, value: torch.optim.Optimizer) -> None:
        self._groups_of_script = len(value.param_groups)
        super().__init__(value)

    def set_value(self, value: Any) -> None:
        self._groups_of_script = len(value.param_groups)
        super().set_value(value)

    def state_dict(self) -> Any:
        return _loading.state_of(self.value)

    own_tensors = state_dict

    def replicated(self, tree: Any) -> Iterator[tuple[str, str, torch.Tensor]]:
        for place, tensor in leaves_of(tree):
            if isinstance(tensor, torch.Tensor):
                yield "optimizer state", place, tensor

    def load(self, saved: Any) -> None:
        self._drop_later_groups(saved)
        self.take(self.trees.copied(saved, self.own_tensors()))

    def take(self, state: Any) -> None:
        self._drop_later_groups(state)
        _loading.load_optimizer(self.value, state)
        self.given()

    def given(self) -> None:
        if isinstance(self.value, GradientOptimizer):
            self.value.take_parameters()  # newcomers have made their optimizers, but not used them

    def open_group(self) -> str:
        return self.value._open_group() if isinstance(self.value, WrappedOptimizer) else ""

    def _drop_later_groups(self, saved: object) -> None:
        """Drops groups that the script has added after the save. Those that it had when it made the state stay: if they do not fit,
        the save is of another script.
        """
        saved_groups = saved.get("param_groups") if isinstance(saved, dict) else None
        if saved_groups is None or len(saved_groups) < self._groups_of_script:
            return
        groups = self.value.param_groups
        for group in groups[len(saved_groups) :]:
            for p in group["params"]:
                self.value.state.pop(p, None)
        del groups[len(saved_groups) :]


class GeneratorStateHandler(StateDictHandler):
    """Handler of torch.Generator."""

    value: torch.Generator

    def state_dict(self) -> dict[str, torch.Tensor]:
        return {"state": self.value.get_state()}

    own_tensors = state_dict

    def load(self, saved: dict[str, torch.Tensor]) -> None:
        self.value.set_state(saved["state"].clone())

    take = load  # type: ignore[assignment]  # its argument has another name


class GradScalerHandler(StateDictHandler):
    """Handler of torch's gradient scalers."""

    def load(self, saved: Any) -> None:
        super().load(saved)
        self._forget_step()

    def take(self, state: Any) -> None:
        super().take(state)
        self._forget_step()

    def _forget_step(self) -> None:
        """Drops what the scaler knows of a step that an error has interrupted. The next step would use its gradients as unscaled ones."""
        if self.value.is_enabled():  # a disabled one knows of no step
            self.value._per_optimizer_states.clear()


class DistributedSamplerHandler(StateDictHandler):
    """Keeps the epoch of torch's sampler in place. Its dataset is not copied, and its rank stays that of the process."""

    value: DistributedSampler[Any]

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self.value.epoch}

    own_tensors = state_dict

    def load(self, saved: dict[str, int]) -> None:
        self.value.set_epoch(saved["epoch"])

    take = load  # type: ignore[assignment]  # its argument has another name


Registry = list[tuple[type, type[StateHandler]]]


def _schedulers() -> list[type]:
    """Returns the types of learning rate schedulers, under the names that torch's versions have."""
    names = ("LRScheduler", "_LRScheduler", "ReduceLROnPlateau")
    return [getattr(torch.optim.lr_scheduler, name) for name in names if hasattr(torch.optim.lr_scheduler, name)]


def _scalers() -> list[type]:
    """Returns the types of gradient scalers that this version of torch has."""
    return [module.GradScaler for module in (torch.amp, torch.cuda.amp) if hasattr(module, "GradScaler")]


_handler_registry: Registry = [
    (torch.nn.Module, ModelStateHandler),
    (torch.optim.Optimizer, OptimizerStateHandler),
    (JobCursor, SamplerStateHandler),
    (torch.Generator, GeneratorStateHandler),
    *((kind, StateDictHandler) for kind in _schedulers()),
    *((kind, GradScalerHandler) for kind in _scalers()),
]


refuse_copies(lambda value: isinstance(value, (torch.Tensor, torch.Generator)))


def get_handler_registry() -> Registry:
    """Returns the list of pairs of type and handler class that :class:`TorchState` uses. The first pair whose type fits a value
    is used.
    """
    return _handler_registry


def set_handler_registry(registry: Registry) -> None:
    """Replaces the pairs of type and handler class, e.g. to handle another type.

    Args:
      registry: the new list; see :func:`get_handler_registry`.
    """
    global _handler_registry
    _handler_registry = registry


def handler_of(value: object) -> Optional[StateHandler]:
    """Returns a new handler of a value; None if its type has none.

    Args:
      value: the value.
    """
    for handled, handler_class in _handler_registry:
        if isinstance(value, handled):
            return handler_class(value)
    if isinstance(value, DistributedSampler) and not has_own_state(value):
        return DistributedSamplerHandler(value)
    return None
