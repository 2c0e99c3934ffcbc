"""The torch implementation of :class:`horovod.common.tensors.TensorAdapter`."""

import functools
import math
import sys
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar, cast

import torch

from horovod import _ffi
from horovod.common.tensors import DTYPES, PARTS, TAKEN, DevicePath, Kind
from horovod.torch import _devices

if TYPE_CHECKING:
    from typing_extensions import Buffer

devices: DevicePath[torch.Tensor] = _devices

# Large blocks come from the system each time, and their first use, page by page, takes longer
# than a request for huge pages. Smaller blocks are kept by the C library and reused.
_LARGE_BYTES = 32 << 20

_Function = TypeVar("_Function", bound=Callable[..., Any])

_NAMES: dict[torch.dtype, str] = {
    value: str(value)[len("torch.") :] for value in vars(torch).values() if isinstance(value, torch.dtype)
}
# Looked up once, because every operation needs them.
_Tensor, _STRIDED = torch.Tensor, torch.strided
_SUPPORTED = {dtype for dtype, name in _NAMES.items() if name in DTYPES or name in PARTS}


def check_type(tensor: torch.Tensor) -> None:
    """Raises ValueError for tensors of a dtype that no collective takes, and for sparse ones."""
    if tensor.dtype not in _SUPPORTED or tensor.layout is not _STRIDED:
        raise ValueError(f"Tensor type {tensor.type()} is not supported. {TAKEN}")


def check(tensor: torch.Tensor) -> Optional[int]:
    if not isinstance(tensor, _Tensor):
        raise ValueError(f"A collective needs a torch.Tensor, got {type(tensor)}.")
    check_type(tensor)
    if not tensor.is_contiguous():
        raise ValueError("Tensor is required to be contiguous. Call its contiguous() first.")
    # The memory of negative and conjugate views has another sign.
    return tensor.data_ptr() if tensor.is_cpu and not tensor.is_neg() and not tensor.is_conj() else None


def kind(value: Any, exact: bool = False) -> Optional[Kind]:
    if not isinstance(value, torch.Tensor):
        return None
    if value.layout != torch.strided or value.is_quantized:
        return None
    if exact and (type(value) is not torch.Tensor or value.requires_grad or not value.is_cpu):
        return None
    return tuple(value.shape), _NAMES[value.dtype]


def address(tensor: torch.Tensor) -> Optional[int]:
    if not tensor.is_cpu or not tensor.is_contiguous() or tensor.is_neg() or tensor.is_conj():
        return None  # the memory of negative and conjugate views has another sign
    place: int = tensor.data_ptr()
    return place


def storage(tensor: torch.Tensor) -> Optional[Hashable]:
    return tensor.data_ptr() if tensor.is_contiguous() else None


def on_host(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    if value.is_cpu and not value.is_neg() and not value.is_conj():
        return value.detach()
    return value.detach().to("cpu", copy=True).resolve_conj().resolve_neg()


def empty_like(tensor: torch.Tensor) -> tuple[torch.Tensor, Optional[int]]:
    result = torch.empty_like(tensor, requires_grad=False)
    if not result.is_cpu:
        return result, None
    place = result.data_ptr()
    size = result.numel() * result.element_size()
    if size >= _LARGE_BYTES:
        _ffi.prefer_huge_pages(place, size)
    return result, place


def from_memory(memory: "Buffer", offset: int, kind: Kind, like: Optional[torch.Tensor] = None) -> torch.Tensor:
    shape, name = kind
    dtype = getattr(torch, name)
    count = math.prod(shape)
    if count == 0:
        tensor = torch.empty(shape, dtype=dtype, device="cpu")
    else:
        tensor = torch.frombuffer(memory, dtype=dtype, count=count, offset=offset)
        tensor = tensor if len(shape) == 1 else tensor.reshape(shape)
    return tensor if like is None or like.is_cpu else tensor.to(like.device)


def assign(target: torch.Tensor, source: torch.Tensor) -> None:
    target, source = target.detach(), source.detach()
    if target.layout is _STRIDED and 0 in target.stride():
        # torch refuses to write to the elements of an expanded tensor, which are the same ones in memory.
        for dimension, stride in enumerate(target.stride()):
            if stride == 0 and target.shape[dimension] > 1:
                target, source = target.narrow(dimension, 0, 1), source.narrow(dimension, 0, 1)
    target.copy_(source)


def check_has_memory(tensor: torch.Tensor, name: str, call: str) -> None:
    """Raises ValueError, with that name, if a parameter or buffer has no memory yet.

    Args:
      tensor: the parameter or buffer.
      name: its name.
      call: what the script should call later.
    """
    if torch.nn.parameter.is_lazy(tensor):
        raise ValueError(f"{name} is of a lazy module and has no shape yet: run one forward pass, then call {call}")
    if tensor.is_meta:
        raise ValueError(
            f"{name} is on the meta device and has no memory: call model.to_empty(device=...), fill it, then call {call}"
        )


def not_compiled(function: _Function) -> _Function:
    """Excludes `function` from torch.compile, if torch has it, without importing the compiler for that."""
    disabled: Any = None

    def chosen() -> Callable[..., object]:
        nonlocal disabled
        if disabled is None:
            dynamo = sys.modules.get("torch._dynamo")
            if dynamo is None or not hasattr(dynamo, "disable"):
                return function
            disabled = dynamo.disable(function)
        return cast("Callable[..., Any]", disabled)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> object:
        # A loop, because the compiler then leaves this frame alone for good. It would compile what is around the call otherwise, once
        # for each value of the arguments, such as names.
        for _ in (None,):
            result = (disabled or chosen())(*args, **kwargs)
        return result

    wrapper._torchdynamo_disable = True  # type: ignore[attr-defined]  # it is called, not traced with the caller
    return cast(_Function, wrapper)
