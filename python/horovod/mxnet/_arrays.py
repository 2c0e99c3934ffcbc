"""The MXNet implementation of :class:`horovod.common.tensors.TensorAdapter`."""

import ctypes
from collections.abc import Hashable
from typing import Any, Optional

import mxnet
import numpy
from mxnet.base import _LIB, check_call
from mxnet.ndarray import NDArray as Array  # mxnet.np.ndarray is one, too

from horovod import _ffi
from horovod.common.tensors import DTYPES, TAKEN, DevicePath, Kind, size_of

devices: Optional[DevicePath[Array]] = None  # arrays are in host memory

_OF_NAME = {name: numpy.dtype(name) for name in DTYPES if name != "bfloat16"}
_OF_NAME["bfloat16"] = numpy.dtype([("bfloat16", numpy.uint16)])  # as MXNet has it
_NAMES = {dtype: name for name, dtype in _OF_NAME.items()}


def _dtype(array: Array) -> Any:
    return numpy.dtype(array.dtype)  # which gives the class of its elements


def _kind(array: Array) -> Kind:
    return tuple(array.shape), _NAMES[_dtype(array)]


def check(tensor: Array) -> Optional[int]:
    if not isinstance(tensor, Array):
        raise ValueError(f"A collective needs an MXNet NDArray, got {type(tensor)}.")
    if tensor.stype != "default":
        raise ValueError(
            f"Arrays of storage type {tensor.stype} are not supported: tostype('default') makes a dense one."
        )
    if tensor.ctx.device_type == "gpu":
        raise ValueError(f"Arrays on {tensor.ctx} are not supported: horovod.mxnet works on mx.cpu().")
    if _dtype(tensor) not in _NAMES:
        raise ValueError(f"Arrays of type {tensor.dtype} are not supported. {TAKEN}")
    return address(tensor)


def kind(value: object, exact: bool = False) -> Optional[Kind]:
    if not isinstance(value, Array) or value.stype != "default" or _dtype(value) not in _NAMES:
        return None
    return _kind(value)


def address(tensor: Array) -> int:
    """Returns the array's address, after MXNet's engine has completed all operations on the array, including reads, because the
    array may be overwritten now.
    """
    place = ctypes.c_void_p()
    check_call(_LIB.MXNDArrayWaitToWrite(tensor.handle))
    check_call(_LIB.MXNDArrayGetData(tensor.handle, ctypes.byref(place)))
    return place.value or 0


def storage(tensor: Array) -> Optional[Hashable]:
    return address(tensor)


def on_host(value: Any) -> Any:
    return value


def _empty(kind: Kind, context: Any, is_numpys: bool) -> tuple[Array, int]:
    shape, dtype = kind
    array = mxnet.nd.empty(shape, context, _OF_NAME[dtype])
    if is_numpys:
        array = array.as_np_ndarray()
    return array, address(array)


def empty_like(tensor: Array) -> tuple[Array, Optional[int]]:
    return _empty(_kind(tensor), tensor.ctx, isinstance(tensor, mxnet.np.ndarray))


def from_memory(memory: Any, offset: int, kind: Kind, like: Any = None) -> Array:
    """Returns a copy: MXNet would release memory of other owners on one of MXNet's threads."""
    array, place = _empty(kind, mxnet.cpu(), mxnet.util.is_np_array())
    if size_of(kind) != 0:
        ctypes.memmove(place, _ffi.address_of_buffer(memory) + offset, size_of(kind))
    return array


def assign(target: Array, source: Array) -> None:
    ctypes.memmove(address(target), address(source), size_of(_kind(source)))
