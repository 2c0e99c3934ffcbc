"""Loading of state dicts into models and optimizers, with as few copies as possible."""

import functools
from typing import Any

import torch

from horovod.elastic.trees import Trees, mapped
from horovod.torch import _tensors

TREES = Trees(_tensors)


class _Given:
    """A tensor that a deep copy does not copy."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor

    def __deepcopy__(self, memo: Any) -> torch.Tensor:
        return self._tensor


def tensors_of(value: Any) -> Any:
    """Returns the state dict of a model or optimizer, if possible with the tensors that it uses itself; loading such a dict needs
    no copy.
    """
    if isinstance(value, torch.nn.Module):
        try:
            return value.state_dict(keep_vars=True)
        except TypeError:  # an overridden state_dict()
            pass
    return value.state_dict()


def load_optimizer(optimizer: torch.optim.Optimizer, state_dict: dict[str, Any]) -> None:
    """Loads `state_dict`, whose tensors the optimizer may keep."""
    kind: type = type(optimizer)
    if _loads_like_torch(kind) and _torch_copies():
        state_dict = mapped(state_dict, lambda value: _Given(value) if isinstance(value, torch.Tensor) else value)
    optimizer.load_state_dict(state_dict)


@functools.cache
def _loads_like_torch(kind: type) -> bool:
    """Returns whether only torch and Horovod define how optimizers of this type are loaded."""
    loading = [base for base in kind.__mro__ if "load_state_dict" in vars(base)]
    return all(base is torch.optim.Optimizer or base.__module__.startswith("horovod.") for base in loading)


@functools.cache
def _torch_copies() -> bool:
    """Returns whether torch copies a state dict deeply before it reads it, as it did until 1.13."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1, device="cpu"))], lr=1.0)
    given = torch.zeros(1, device="cpu")
    optimizer.load_state_dict({**optimizer.state_dict(), "state": {0: {"given": given}}})
    (state,) = optimizer.state.values()
    return state["given"] is not given
