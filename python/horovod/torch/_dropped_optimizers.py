"""The warning for a distributed optimizer that the script has dropped without a step, while its parameters are still trained."""

import weakref
from typing import Callable, Optional, Protocol

import torch
from torch.utils.hooks import RemovableHandle

from horovod.common import _warnings
from horovod.common.basics import is_initialized
from horovod.torch._tensors import not_compiled

_DROPPED = (
    "a hvd.DistributedOptimizer was dropped before its first step, and its parameters are trained without it: each rank steps with "
    "its own gradients. Keep what hvd.DistributedOptimizer returns, and step with it: optimizer = hvd.DistributedOptimizer(optimizer, ...)"
)


class _Optimizer(Protocol):
    """What is asked of a distributed optimizer."""

    _hooks: dict[torch.Tensor, RemovableHandle]


# Those that exist.
_existing: "weakref.WeakSet[_Optimizer]" = weakref.WeakSet()


class DropWatch:
    """Looks whether an optimizer is dropped before :meth:`end`. If so, the next gradient of its parameters causes the warning, unless
    another distributed optimizer has that parameter.

    The gradient is waited for because scripts may drop an optimizer rightly, together with the model or to make it anew.
    """

    def __init__(self, optimizer: _Optimizer) -> None:
        _existing.add(optimizer)
        self._parameters: list[weakref.ref[torch.Tensor]] = []
        self._finalizer = weakref.finalize(optimizer, _await_gradient, self._parameters)
        self._finalizer.atexit = False

    def add(self, p: torch.Tensor) -> None:
        """Adds a parameter of the optimizer."""
        self._parameters.append(weakref.ref(p))

    def end(self) -> None:
        """Ends the watch: the optimizer is in use."""
        self._finalizer.detach()


def _await_gradient(parameters: list["weakref.ref[torch.Tensor]"]) -> None:
    hooks: list[RemovableHandle] = []  # all of them end with the first gradient

    def hook_of(p: torch.Tensor) -> Callable[[torch.Tensor], None]:
        this = weakref.ref(p)  # a hook must not keep its own tensor alive

        @not_compiled
        def hook(_: torch.Tensor) -> None:
            if hooks:
                for each in hooks:
                    each.remove()
                hooks.clear()
                _warn_unless_reduced(this())

        return hook

    for each in parameters:
        p = each()
        if p is not None and p.requires_grad:
            hooks.append(p.register_hook(hook_of(p)))


def _warn_unless_reduced(p: Optional[torch.Tensor]) -> None:
    if p is not None and is_initialized() and not any(p in other._hooks for other in list(_existing)):
        _warnings.warn(_DROPPED)
