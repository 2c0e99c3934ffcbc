"""Gradients that are reduced, and whether they are still the same."""

import weakref
from collections.abc import Iterable
from typing import Callable, NamedTuple, Optional

import torch


class _Seen(NamedTuple):
    """A gradient as it was, without keeping its memory. `grad` refers to nothing if there was none."""

    grad: Callable[[], Optional[torch.Tensor]]
    version: int

    @classmethod
    def of(cls, p: torch.Tensor) -> "_Seen":
        return cls(lambda: None, 0) if p.grad is None else cls(weakref.ref(p.grad), p.grad._version)


class ReducedGradients:
    """Gradients as an optimizer has left them when it had reduced them, and maybe stepped. Not thread-safe.

    They tell a gradient that was reduced from a new one where no hook has seen it: in another optimizer of the same parameter, and
    within backward().
    """

    def __init__(self) -> None:
        self._seen: dict[torch.Tensor, _Seen] = {}

    def note(self, parameters: Iterable[torch.Tensor]) -> None:
        """Takes the gradients of `parameters` as they are now."""
        self._seen.update((p, _Seen.of(p)) for p in parameters)

    def renew(self) -> None:
        """Takes the gradients of all noted parameters as they are now: the optimizer itself has changed them."""
        self.note(list(self._seen))

    def drop(self, p: torch.Tensor) -> None:
        """Forgets the gradient of `p`."""
        self._seen.pop(p, None)

    def clear(self) -> None:
        """Forgets all gradients."""
        self._seen.clear()

    def has(self, p: torch.Tensor) -> bool:
        """Returns whether the gradient of `p` is the noted object, and not all zeros. Its values may differ."""
        seen = self._seen.get(p)
        return seen is not None and p.grad is not None and seen.grad() is p.grad and not _is_zero(p.grad)

    def takes_none_since(self, p: torch.Tensor) -> bool:
        """Returns whether backward() has added nothing to the gradient of `p` since it was noted, and forgets that gradient. The
        script may have removed it or set it to zero.
        """
        seen = self._seen.pop(p, None)
        if seen is None:
            return False
        if p.grad is None or (seen.grad() is p.grad and seen.version == p.grad._version):
            return True
        return _is_zero(p.grad)


def _is_zero(gradient: torch.Tensor) -> bool:
    values = gradient._values() if gradient.is_sparse else gradient
    return not bool(values.any())
