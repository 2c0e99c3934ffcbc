"""How each kind of value in a state is saved, restored and synchronized."""

from collections import OrderedDict
from typing import Any, Iterable, List, Optional, Tuple, Type

import torch

from horovod.common import ops
from horovod.elastic import trees as _trees
from horovod.torch import _loading
from horovod.elastic.cursor import JobCursor
from horovod.elastic.tree_store import PlacedTree
from horovod.torch.functions import broadcast_tree
from horovod.torch.mpi_ops import rank


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

    def reset(self) -> None:
        """Called in a new world, before anything else looks at the value."""

    def set_value(self, value: Any) -> None:
        """Handles another value from now on."""
        self.value = value
        self.save()


class StateDictHandler(StateHandler):
    """For values that have state_dict and load_state_dict.

    Copies are in host memory. Two take turns, so that a copy that is interrupted leaves the one
    before intact, and no memory is asked for at each save. Those of commits lie in the store, if
    there is one.
    """

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self._saved: Any = None
        self._spare: Any = None
        self.save()

    def save(self) -> None:
        self.keep(self.copied())

    def restore(self) -> None:
        self.load(self.saved())

    def sync(self) -> None:
        ops.check_ready()
        tree = broadcast_tree(self.own_tensors(), 0, "horovod.state")
        if rank() != 0:
            self.take(tree)
        else:
            self.given()

    def copied(self) -> Any:
        """A copy of the state dict as it is now; it is no save until :meth:`keep`."""
        return _trees.copied(self.state_dict(), self._spare)

    def state_dict(self) -> Any:
        """What :meth:`copied` copies."""
        return self.value.state_dict()

    def keep(self, copied: Any, busy: Iterable[Any] = ()) -> None:
        """Makes `copied` the last save. The one before is written to later on, unless it is one of
        `busy`."""
        before, self._saved = self._saved, copied
        is_busy = any(before is tree for tree in busy)
        in_store = isinstance(before, PlacedTree) or isinstance(copied, PlacedTree)
        self._spare = None if is_busy or in_store else before

    def saved(self) -> Any:
        """The last save; not to be changed."""
        return self._saved.tree() if isinstance(self._saved, PlacedTree) else self._saved

    def load(self, saved: Any) -> None:
        """Gives the value the state `saved`, which stays as it is."""
        # A copy: some load_state_dict keep what they are given.
        self.value.load_state_dict(_trees.copied(saved))

    def own_tensors(self) -> Any:
        """A state dict with those tensors of the value that may be overwritten for :meth:`take`."""
        return self.value.state_dict()

    def take(self, state: Any) -> None:
        """Gives the value the state `state`, whose tensors it may keep."""
        self.value.load_state_dict(state)

    def given(self) -> None:
        """Called where the value has the state already that others :meth:`take`."""


class ModelStateHandler(StateDictHandler):
    """For torch.nn.Module."""

    def state_dict(self) -> Any:
        state_dict = self.value.state_dict()
        # The versions of the state's layout, which modules look for when they load it.
        self._metadata = getattr(state_dict, "_metadata", {})
        return state_dict

    def load(self, saved: Any) -> None:
        self.take(saved)  # no copy of tensors: modules copy what they are given

    def own_tensors(self) -> Any:
        self._metadata = getattr(self.value.state_dict(), "_metadata", {})
        return _loading.tensors_of(self.value)

    def take(self, state: Any) -> None:
        state_dict = OrderedDict(state)
        state_dict._metadata = self._metadata
        self.value.load_state_dict(state_dict)


class OptimizerStateHandler(StateDictHandler):
    """For torch.optim.Optimizer, distributed or not."""

    def load(self, saved: Any) -> None:
        self.take(_trees.copied(saved, self.own_tensors()))

    def take(self, state: Any) -> None:
        _loading.load_optimizer(self.value, state)


class SamplerStateHandler(StateDictHandler):
    """For ElasticSampler and ElasticIterableDataset."""

    def reset(self) -> None:
        self.value.reset()

    def given(self) -> None:
        self.value.reset()  # as the others, which load that state


Registry = List[Tuple[type, Type[StateHandler]]]


def _with_state_dict() -> List[type]:
    """Learning rate schedulers and gradient scalers, by the names that torch's versions have."""
    modules = (torch.optim.lr_scheduler, torch.amp, torch.cuda.amp)
    names = ("LRScheduler", "_LRScheduler", "ReduceLROnPlateau", "GradScaler")
    return [getattr(module, name) for module in modules for name in names if hasattr(module, name)]


_handler_registry: Registry = [
    (torch.nn.Module, ModelStateHandler),
    (torch.optim.Optimizer, OptimizerStateHandler),
    (JobCursor, SamplerStateHandler),
    *((kind, StateDictHandler) for kind in _with_state_dict()),
]


def get_handler_registry() -> Registry:
    """The pairs of type and handler class that :class:`TorchState` uses; the first that fits a
    value counts."""
    return _handler_registry


def set_handler_registry(registry: Registry) -> None:
    """Replaces the pairs of type and handler class, e.g. to handle a type of one's own."""
    global _handler_registry
    _handler_registry = registry


def handler_of(value: Any) -> Optional[StateHandler]:
    """A new handler of the value; None if its type has none."""
    for handled, handler_class in _handler_registry:
        if isinstance(value, handled):
            return handler_class(value)
    return None
