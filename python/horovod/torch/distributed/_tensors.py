"""Tensors of torch as the memory of requests."""

import functools
import zlib
from collections.abc import Sequence
from typing import NamedTuple, Optional

import torch

from horovod import _ffi
from horovod.common.tensors import DTYPES

_COMPLEX = {torch.complex64: torch.float32, torch.complex128: torch.float64}


class Elements(NamedTuple):
    """How the runtime sees a tensor's elements: their type, and how many there are for each element of the tensor."""

    dtype: int
    per_element: int


@functools.cache
def elements_of(dtype: torch.dtype) -> Optional[Elements]:
    """Returns how the runtime sees elements of this type, complex ones as two; None: only as bytes."""
    if dtype in _COMPLEX:
        return Elements(DTYPES[_name_of(_COMPLEX[dtype])], 2)
    number = DTYPES.get(_name_of(dtype))
    return None if number is None else Elements(number, 1)


@functools.cache
def moved_elements_of(dtype: torch.dtype) -> Elements:
    """Returns how the runtime sees elements of this type that it only moves."""
    return elements_of(dtype) or Elements(_ffi.UINT8, torch.empty(0, dtype=dtype).element_size())


def number_of(dtype: torch.dtype) -> int:
    """Returns a number that tells the element types of messages apart, the same in every process of a torch version."""
    return zlib.crc32(_name_of(dtype).encode()) >> 1


def _name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def contiguous(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the tensor, or a copy whose elements are in one piece and as the tensor shows them."""
    if tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg():
        return tensor
    return tensor.contiguous().resolve_conj().resolve_neg()


def address_of(tensor: torch.Tensor) -> int:
    """Returns the address of the tensor's memory; 0 if it has no elements. Raises RuntimeError: it has no memory, as a FakeTensor."""
    address = tensor.data_ptr()
    if address == 0 and tensor.numel() > 0:
        raise RuntimeError(f"The backend hvd needs tensors with memory, got a {type(tensor).__name__} without.")
    return address


def check_dense(tensors: Sequence[torch.Tensor]) -> None:
    """Raises RuntimeError for tensors that have no plain memory."""
    for tensor in tensors:
        if tensor.layout != torch.strided:
            raise RuntimeError(f"The backend hvd takes dense tensors, got one of layout {tensor.layout}.")


def from_result(handle: int, index: int, like: torch.Tensor) -> torch.Tensor:
    """Returns the runtime's own memory with a result as a flat tensor of the dtype of `like`, valid until the handle is released."""
    result = _ffi.result(handle, index)
    rows = 1
    for extent in result.shape:
        rows *= extent
    elements = moved_elements_of(like.dtype)
    count = rows // elements.per_element
    if count == 0:
        return torch.empty(0, dtype=like.dtype)
    memory = _ffi.memory(result.address, count * like.element_size())
    return torch.frombuffer(memory, dtype=like.dtype)
