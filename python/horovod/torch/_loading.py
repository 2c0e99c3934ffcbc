"""Loading of state dicts into models and optimizers, with as few copies as possible."""

import functools
from typing import Any

import torch

from horovod.elastic.trees import Trees, mapped
from horovod.torch import _tensors
from horovod.torch._kept_objects import same_groups_and_state, with_inner

TREES = Trees(_tensors)

_INNER = "horovod.inner_optimizers"  # the key of their states, by number


class _Given:
    """A tensor that a deep copy does not copy."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor

    def __deepcopy__(self, memo: object) -> torch.Tensor:
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


def state_of(optimizer: torch.optim.Optimizer) -> Any:
    """Returns the optimizer's state dict, with the tensors that it uses itself. If the optimizer is made around other ones whose state
    this lacks, or would load with other dtypes, their state dicts are under a further key.
    """
    own, inner = optimizer.state_dict(), with_inner(optimizer)[1:]
    if not inner or not isinstance(own, dict):
        return own
    apart = {
        number: each.state_dict()
        for number, each in enumerate(inner)
        if hasattr(each, "state_dict") and (_lacks(own, each) or _is_cast(each) or _has_own_groups(optimizer, each))
    }
    return {**own, _INNER: apart}


def _lacks(state_dict: object, inner: object) -> bool:
    """Returns whether a tensor of an inner optimizer's state is not in `state_dict`."""
    ids = {id(leaf) for leaf in _leaves(state_dict)}
    return any(isinstance(leaf, torch.Tensor) and id(leaf) not in ids for _, _, leaf in _values_in(inner))


def _has_own_groups(outer: Any, inner: Any) -> bool:
    """Returns whether an inner optimizer has groups, with a learning rate, that are not the outer one's."""
    ids = set(map(id, outer.param_groups))
    return any(id(group) not in ids for group in inner.param_groups)


def _is_cast(inner: object) -> bool:
    """Returns whether torch would cast a part of an inner optimizer's state when it loads it."""
    values = [(p, leaf) for p, name, leaf in _values_in(inner) if isinstance(p, torch.Tensor) and name != "step"]
    return any(isinstance(leaf, str) or getattr(leaf, "dtype", p.dtype) != p.dtype for p, leaf in values)


def _values_in(optimizer: object) -> list[tuple[object, object, object]]:
    """Returns the parameter, the name and the value of each part of an optimizer's state."""
    state = getattr(optimizer, "state", {})
    if not isinstance(state, dict):
        return []
    named = [(p, name, value) for p, parts in state.items() if isinstance(parts, dict) for name, value in parts.items()]
    return [(p, name, leaf) for p, name, value in named for leaf in _leaves(value)]


def _leaves(value: object) -> list[object]:
    leaves: list[object] = []
    mapped(value, leaves.append)
    return leaves


def load_optimizer(optimizer: torch.optim.Optimizer, state_dict: dict[str, Any]) -> None:
    """Loads what :func:`state_of` has returned; the optimizer may keep its tensors. Their dtypes stay, and so do the groups' dicts."""
    apart, began_later = {}, []
    if isinstance(state_dict, dict) and _INNER in state_dict:
        apart = state_dict[_INNER]
        state_dict = {key: value for key, value in state_dict.items() if key != _INNER}
        inner, present = with_inner(optimizer)[1:], optimizer.state_dict()
        began_later = [each for number, each in enumerate(inner) if number not in apart and _lacks(present, each)]
    kind: type = type(optimizer)
    like_torch = _loads_like_torch(kind)
    given = state_dict
    if like_torch and _torch_copies():
        given = mapped(state_dict, lambda value: _Given(value) if isinstance(value, torch.Tensor) else value)
    with same_groups_and_state(optimizer):
        optimizer.load_state_dict(given)
    if like_torch:
        _undo_casts(optimizer, state_dict)
    for each in began_later:
        each.state.clear()
    for number, each in apart.items():
        load_optimizer(with_inner(optimizer)[1:][number], each)


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


def _without_cast(saved: Any, loaded: Any) -> object:
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
