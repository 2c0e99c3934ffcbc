"""State dicts: nested dicts, lists and tuples with tensors among their values, taken apart, copied
and put together."""

import copy
from collections import OrderedDict
from typing import Any, Callable, List, NamedTuple, Tuple

import torch

_ALIGNMENT = 64


class _Place(NamedTuple):
    """Stands for a tensor in a schema: where in the buffer it is."""

    offset: int
    shape: Tuple[int, ...]
    dtype: torch.dtype

    def size(self) -> int:
        return torch.Size(self.shape).numel() * torch.empty(0, dtype=self.dtype).element_size()

    def view(self, buffer: torch.Tensor) -> torch.Tensor:
        part = buffer[self.offset : self.offset + self.size()]
        return part.view(self.dtype).reshape(self.shape)


class _Packed(NamedTuple):
    place: _Place
    tensor: torch.Tensor


def is_dict(value: Any) -> bool:
    """Whether `value` is a dict, ordered or not; other subclasses are left as they are."""
    return type(value) in (dict, OrderedDict)


def is_plain(value: Any) -> bool:
    """Whether `value` is a tensor that its shape, type and bytes tell all about."""
    return (
        isinstance(value, torch.Tensor)
        and value.layout == torch.strided
        and not value.is_quantized
    )


def mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    """A copy of `value`, with `function` applied to what is no dict, list or tuple."""
    if is_dict(value):
        return type(value)((key, mapped(item, function)) for key, item in value.items())
    if type(value) in (list, tuple):
        return type(value)(mapped(item, function) for item in value)
    return function(value)


def take_tensors(tree: Any) -> Tuple[Any, List[_Packed], int]:
    """A copy of `tree` with places instead of tensors; the tensors and their places; and how many
    bytes they take in a buffer."""
    packed: List[_Packed] = []
    end = 0

    def take(value: Any) -> Any:
        nonlocal end
        if not is_plain(value):
            return value
        place = _Place(end, tuple(value.shape), value.dtype)
        packed.append(_Packed(place, value))
        end += -(-value.numel() * value.element_size() // _ALIGNMENT) * _ALIGNMENT
        return place

    return mapped(tree, take), packed, end


def new_buffer(size: int) -> torch.Tensor:
    """Memory for so many bytes of tensors."""
    return torch.empty(size, dtype=torch.uint8)


def pack(packed: List[_Packed], buffer: torch.Tensor) -> None:
    """Copies tensors to their places."""
    for place, tensor in packed:
        place.view(buffer).copy_(tensor.detach())


def put_tensors(schema: Any, buffer: torch.Tensor) -> Any:
    """Undoes :func:`take_tensors`; the tensors are views of `buffer`."""
    return mapped(
        schema, lambda value: value.view(buffer) if isinstance(value, _Place) else value
    )


def copied(value: Any, spare: Any = None) -> Any:
    """A copy of `value` in host memory, tensors in the memory of `spare` (an older copy) where they
    fit."""
    if isinstance(value, torch.Tensor):
        fits = (
            is_plain(value)
            and is_plain(spare)
            and spare.shape == value.shape
            and spare.dtype == value.dtype
        )
        if fits:
            return spare.copy_(value.detach())
        return value.detach().to("cpu", copy=True)
    if is_dict(value):
        spare = spare if is_dict(spare) else {}
        return type(value)((key, copied(item, spare.get(key))) for key, item in value.items())
    if type(value) in (list, tuple):
        if type(spare) is not type(value) or len(spare) != len(value):
            spare = [None] * len(value)
        return type(value)(copied(item, old) for item, old in zip(value, spare))
    return copy.deepcopy(value)
