"""Loading of state dicts into models and optimizers, with as few copies as possible."""

import functools
from typing import Any

import torch

from horovod.elastic.trees import Trees, mapped
from horovod.torch import _tensors
from horovod.torch._kept_objects import same_groups_and_state

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
    """Loads `state_dict`, whose tensors the optimizer may keep. Their dtypes stay, and so do the optimizer's group dicts."""
    kind: type = type(optimizer)
    like_torch = _loads_like_torch(kind)
    given = state_dict
    if like_torch and _torch_copies():
        given = mapped(state_dict, lambda value: _Given(value) if isinstance(value, torch.Tensor) else value)
    with same_groups_and_state(optimizer):
        optimizer.load_state_dict(given)
    if like_torch:
        _undo_casts(optimizer, state_dict)


def _undo_casts(optimizer: torch.optim.Optimizer, state_dict: dict[str, Any]) -> None:
    """Gives state that torch has cast to the dtype of its parameter the values of `state_dict`, as one rank or the save has them:
    a counter of a half-precision parameter, its copy in float32, a string (which torch takes for a sequence of tensors).
    """
    for saved_group, group in zip(state_dict["param_groups"], vars(optimizer).get("param_groups", [])):
        for index, p in zip(saved_group["params"], group["params"]):
            saved, loaded = state_dict["state"].get(index), optimizer.state.get(p)
            if isinstance(saved, dict) and isinstance(loaded, dict):
                for name, value in saved.items():
                    is_cast_for_kernels = name == "step" and (group.get("fused") or group.get("capturable"))
                    if name in loaded and not is_cast_for_kernels:
                        loaded[name] = _without_cast(value, loaded[name])


def _without_cast(saved: Any, loaded: Any) -> Any:
    if isinstance(saved, torch.Tensor):
        is_cast = isinstance(loaded, torch.Tensor) and loaded.dtype != saved.dtype
        return saved.to(loaded.device) if is_cast else loaded
    if type(saved) is dict and type(loaded) is dict:
        return {key: _without_cast(value, loaded.get(key, value)) for key, value in saved.items()}
    if type(saved) in (list, tuple) and type(loaded) is type(saved) and len(loaded) == len(saved):
        return type(saved)(map(_without_cast, saved, loaded))
    return saved if isinstance(saved, str) else loaded


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
