"""The numpy implementation of :class:`horovod.common.tensors.TensorAdapter`."""

from collections.abc import Hashable
from typing import Any, Optional

import numpy

from horovod.common.tensors import DTYPES, PARTS, TAKEN, DevicePath, Kind

devices: Optional[DevicePath] = None  # arrays are in host memory


def array_of(value: Any) -> numpy.ndarray:
    """Returns `value` as an array: itself, a view of a buffer or of an object with DLPack, or a copy.

    Raises ValueError for a value that is more than its elements (a masked array, a tensor with a gradient) or can't be
    converted.
    """
    if isinstance(value, numpy.ma.MaskedArray):
        raise ValueError("Masked arrays are not supported, the mask would be lost: give filled() or its data.")
    if isinstance(value, bytes):
        return numpy.frombuffer(value, numpy.uint8)
    if hasattr(value, "__dlpack__") and not isinstance(value, numpy.ndarray):
        try:
            return numpy.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError) as error:
            raise ValueError(f"{type(value).__name__} is not supported by numpy: {error}") from error
    return numpy.asarray(value)


def check(tensor: numpy.ndarray) -> Optional[int]:
    name = tensor.dtype.name
    if not (name in DTYPES or name in PARTS) or not tensor.dtype.isnative:
        raise ValueError(f"Arrays of type {tensor.dtype} are not supported. {TAKEN}")
    if not tensor.flags.c_contiguous:
        raise ValueError("Arrays are required to be contiguous: numpy.ascontiguousarray helps.")
    return address(tensor)


def kind(value: Any, exact: bool = False) -> Optional[Kind]:
    if type(value) is not numpy.ndarray or not value.dtype.isnative:
        return None
    return (value.shape, value.dtype.name) if value.dtype.kind in "biufc" or value.dtype.name in DTYPES else None


def address(tensor: numpy.ndarray) -> Optional[int]:
    return tensor.ctypes.data if tensor.flags.c_contiguous else None


def storage(tensor: numpy.ndarray) -> Optional[Hashable]:
    return address(tensor) if tensor.flags.writeable else None


def on_host(value: Any) -> Any:
    return value


def empty_like(tensor: numpy.ndarray) -> tuple[numpy.ndarray, Optional[int]]:
    result = numpy.empty(tensor.shape, tensor.dtype)
    return result, address(result)


def from_memory(memory: Any, offset: int, kind: Kind, like: Any = None) -> numpy.ndarray:
    shape, dtype = kind
    return numpy.empty(shape, dtype) if 0 in shape else numpy.ndarray(shape, dtype, memory, offset)


def assign(target: numpy.ndarray, source: numpy.ndarray) -> None:
    target[...] = source
