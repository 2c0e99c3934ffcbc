"""Between torch's tensors and the runtime's memory."""

import functools
import math
import sys
from typing import Any, Callable, Optional, Sequence

import torch

from horovod import _ffi

# Of memory that comes from the system each time, where its first use takes longer, page by page,
# than asking for huge pages. Less is kept by the C library and used again.
_LARGE_BYTES = 32 << 20

_DTYPES = {
    torch.uint8: _ffi.UINT8,
    torch.int8: _ffi.INT8,
    torch.int16: _ffi.INT16,
    torch.int32: _ffi.INT32,
    torch.int64: _ffi.INT64,
    torch.float16: _ffi.FLOAT16,
    torch.bfloat16: _ffi.BFLOAT16,
    torch.float32: _ffi.FLOAT32,
    torch.float64: _ffi.FLOAT64,
    torch.bool: _ffi.BOOL,
}


def check(tensor: torch.Tensor) -> None:
    """Raises ValueError if collectives can't take `tensor`."""
    if not isinstance(tensor, torch.Tensor):
        raise ValueError("A collective needs a torch.Tensor, got {}.".format(type(tensor)))
    if tensor.dtype not in _DTYPES or tensor.layout != torch.strided:
        raise ValueError("Tensor type {} is not supported.".format(tensor.type()))
    if not tensor.is_contiguous():
        raise ValueError("Tensor is required to be contiguous.")


def in_host_memory(tensor: torch.Tensor) -> bool:
    """Whether the runtime can read and write `tensor` where it is; any other goes through a
    copy."""
    return tensor.is_cpu and not tensor.is_neg()  # such a view's memory has the other sign


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor` without its autograd history, in host memory: the same memory if it is there
    already."""
    tensor = tensor.detach()
    return tensor if in_host_memory(tensor) else tensor.to("cpu", copy=True)


def result_like(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor like `tensor`, of any values and without autograd history, for the result of an
    operation."""
    result = torch.empty_like(tensor, requires_grad=False)
    size = result.numel() * result.element_size()
    if size >= _LARGE_BYTES and in_host_memory(result):
        _ffi.prefer_huge_pages(result.data_ptr(), size)
    return result


def request(
    name: str,
    op: int,
    tensor: torch.Tensor,
    output: Optional[torch.Tensor] = None,
    shape: Optional[Sequence[int]] = None,
    **fields: Any,
) -> _ffi.Request:
    """A request of `tensor` (of its leading part, if `shape` is given), which must be in host
    memory, or on the device that `fields` say."""
    return _ffi.request(
        name,
        op,
        _DTYPES[tensor.dtype],
        tensor.shape if shape is None else shape,
        tensor.data_ptr(),
        0 if output is None else output.data_ptr(),
        **fields,
    )


def from_result(result: _ffi.Result, like: torch.Tensor, owner: _ffi.ResultOwner) -> torch.Tensor:
    """The runtime's result as a tensor of `like`'s type and device; without a copy if that is the
    host."""
    count = math.prod(result.shape)
    if count == 0:
        return torch.empty(result.shape, dtype=like.dtype, device=like.device)
    memory = _ffi.memory(result.address, count * like.element_size(), owner)
    tensor = torch.frombuffer(memory, dtype=like.dtype).reshape(result.shape)
    return tensor if in_host_memory(like) else tensor.to(like.device)


def not_compiled(function: Callable) -> Callable:
    """Keeps torch.compile out of `function`, where torch has it, without importing the compiler for
    that."""
    disabled = None

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        nonlocal disabled
        if disabled is None:
            dynamo = sys.modules.get("torch._dynamo")
            if dynamo is None or not hasattr(dynamo, "disable"):
                return function(*args, **kwargs)
            disabled = dynamo.disable(function)
        return disabled(*args, **kwargs)

    return wrapper
