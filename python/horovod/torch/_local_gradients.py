"""Gradients that backward() has left unreduced, and whether the script has changed them since."""

from collections.abc import Iterable

import torch

from horovod.common import _warnings
from horovod.torch._reductions import Watched

_CHANGED = (
    "the gradient of {name} was changed (clipped, for instance) after backward() and before its reduction, by each rank alone: "
    "fewer backward passes than backward_passes_per_step came before step(), or all within no_sync(). Call "
    "optimizer.synchronize() before the change, and step() within `with optimizer.skip_synchronize():`"
)


class LocalGradients:
    """The unreduced gradients as they were at the end of the last backward(). Not thread-safe.

    A change within backward(), in a hook of the script, comes before the reduction by intent and does not count. One through
    ``grad.data`` is not seen: it leaves no trace in the gradient.
    """

    def __init__(self) -> None:
        self._left: dict[torch.Tensor, Watched] = {}  # by parameter
        self._has_warned = False

    def note(self, parameters: Iterable[torch.Tensor]) -> None:
        """Takes the gradients of `parameters` as they are now."""
        self._left.update((p, Watched.of(p)) for p in parameters if p.grad is not None)

    def drop(self, p: torch.Tensor) -> None:
        """Forgets the gradient of `p`, which is being computed again."""
        self._left.pop(p, None)

    def clear(self) -> None:
        """Forgets all gradients."""
        self._left.clear()

    def warn_of_change(self, names: dict[torch.Tensor, str]) -> None:
        """Warns, once, if the script has changed a gradient. One that it has removed is none."""
        if self._has_warned:
            return
        changed = next((p for p, left in self._left.items() if p.grad is not None and left.is_changed()), None)
        if changed is not None:
            self._has_warned = True
            _warnings.warn(_CHANGED.format(name=names[changed]))
