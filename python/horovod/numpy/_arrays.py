"""The implementation of :class:`horovod.common.tensors.TensorAdapter` for numpy's arrays, and for those of other libraries on CUDA
devices (:mod:`horovod.numpy._device_arrays`).
"""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Optional, Protocol, Union

import numpy

from horovod.common.tensors import DTYPES, PARTS, TAKEN, DevicePath, Kind
from horovod.numpy import _device_arrays, _devices
from horovod.numpy._device_arrays import library_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    class _OfDLPack(Protocol):
        def __dlpack__(self) -> object: ...

    class _OfCuda(Protocol):
        @property
        def __cuda_array_interface__(self) -> dict[str, object]: ...

    Given = Union[ArrayLike, _OfDLPack, _OfCuda]  # what array_of takes

# Arrays of other libraries on CUDA devices take the place of numpy's here; library_of tells which they are.
devices: DevicePath[numpy.ndarray] = _devices


def array_of(value: "Given") -> numpy.ndarray:
    """Returns `value` as an array: itself, a view of a buffer or of an object with DLPack, or a copy. What is in a device's memory
    stays there.

    Raises ValueError for a value that is more than its elements (a masked array, a tensor with a gradient) or can't be
    converted.
    """
    if isinstance(value, numpy.ma.MaskedArray):
        raise ValueError("Masked arrays are not supported, the mask would be lost: give filled() or its data.")
    if isinstance(value, bytes):
        return numpy.frombuffer(value, numpy.uint8)
    if isinstance(value, numpy.ndarray):
        return numpy.asarray(value)
    if _device_arrays.is_on_device(value):
        lent: numpy.ndarray = _device_arrays.lend(value)
        return lent
    if hasattr(value, "__dlpack__"):
        exporter: Any = value
        try:
            return numpy.from_dlpack(exporter)
        except (BufferError, RuntimeError, TypeError) as error:
            raise ValueError(f"{type(value).__name__} is not supported by numpy: {error}") from error
    return numpy.asarray(value)


def splits_of(splits: Any) -> object:
    """Returns splits as an array in host memory, because received_splits are where the splits are. What can't be splits is returned as
    it is.
    """
    if splits is None:
        return numpy.empty(0, numpy.int32)
    if isinstance(splits, numpy.ndarray) or library_of(splits) is not None:
        is_vector = len(splits.shape) == 1 and hasattr(splits, "tolist")
        counts = splits.tolist() if is_vector else None
    else:
        counts = splits
    if not isinstance(counts, (list, tuple)) or not all(
        hasattr(one, "__index__") and abs(one) < 2**31 for one in counts
    ):
        return splits
    return numpy.array(counts, numpy.int32)


def check(tensor: numpy.ndarray) -> Optional[int]:
    library = library_of(tensor)
    if library is not None:
        name = library.view(tensor).kind[1]
        if not (name in DTYPES or name in PARTS):
            raise ValueError(f"Arrays of type {name} are not supported. {TAKEN}")
        if not library.view(tensor).is_contiguous:
            raise ValueError(f"Arrays are required to be contiguous: {library.contiguous} helps.")
        return None
    name = tensor.dtype.name
    if not (name in DTYPES or name in PARTS) or not tensor.dtype.isnative:
        raise ValueError(f"Arrays of type {tensor.dtype} are not supported. {TAKEN}")
    if not tensor.flags.c_contiguous:
        raise ValueError("Arrays are required to be contiguous: numpy.ascontiguousarray helps.")
    return address(tensor)


def kind(value: object, exact: bool = False) -> Optional[Kind]:
    if type(value) is not numpy.ndarray:
        library = None if exact else library_of(value)
        return None if library is None else library.view(value).kind
    if not value.dtype.isnative:
        return None
    return (value.shape, value.dtype.name) if value.dtype.kind in "biufc" or value.dtype.name in DTYPES else None


def address(tensor: numpy.ndarray) -> Optional[int]:
    if not isinstance(tensor, numpy.ndarray):
        return None
    return tensor.ctypes.data if tensor.flags.c_contiguous else None


def storage(tensor: numpy.ndarray) -> Optional[Hashable]:
    library = library_of(tensor)
    if library is not None:
        view = library.view(tensor)
        return view.address if view.is_contiguous and view.is_writable else None
    return address(tensor) if tensor.flags.writeable else None


def on_host(value: Any) -> Any:
    library = library_of(value)
    return value if library is None else _device_arrays.to_host(value, library)


def empty_like(tensor: numpy.ndarray) -> tuple[numpy.ndarray, Optional[int]]:
    library = library_of(tensor)
    if library is not None:
        view = library.view(tensor)
        return library.empty(view.kind, view.device), None
    result = numpy.empty(tensor.shape, tensor.dtype)
    return result, address(result)


def from_memory(memory: Any, offset: int, kind: Kind, like: Optional[numpy.ndarray] = None) -> numpy.ndarray:
    shape, dtype = kind
    array = (
        numpy.empty(shape, dtype)
        if 0 in shape
        else numpy.ndarray(shape, _device_arrays.numpy_dtype(dtype), memory, offset)
    )
    library = library_of(like)
    if library is None:
        return array
    result: numpy.ndarray = library.empty(kind, library.view(like).device)
    _device_arrays.fill(result, library, array)
    return result


def assign(target: numpy.ndarray, source: numpy.ndarray) -> None:
    to, of = library_of(target), library_of(source)
    if to is None:
        target[...] = source if of is None else _device_arrays.to_host(source, of)
    elif of is None:
        _device_arrays.fill(target, to, source)
    else:
        _device_arrays.move(target, to, source, of)
