"""Arrays in the memory of CUDA devices: of which libraries they are, what they are made of, and with which streams they are ordered.

CuPy's arrays and PyTorch's tensors are used as they are, and results are of the same library. Arrays of other libraries are lent by
``__dlpack__`` or ``__cuda_array_interface__`` and become a :class:`DeviceArray`.
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import numpy

from horovod import _ffi
from horovod.common.tensors import Kind, size_of

if TYPE_CHECKING:
    import torch

A = TypeVar("A")  # a library's arrays
_CUDA, _CUDA_MANAGED = 2, 13  # DLPack's numbers of devices
# CUDA's numbers of default streams. The legacy one waits for all other streams but those that were made not to take part.
_LEGACY_STREAM, _PER_THREAD_STREAM = 1, 2


class View(NamedTuple):
    """What an array is made of."""

    kind: Kind
    address: int
    device: int
    is_contiguous: bool
    is_writable: bool = True


class Library(Protocol[A]):
    """What is asked of a library of arrays."""

    contiguous: str  # the function that makes an array contiguous, for messages

    def view(self, array: A) -> View:
        """Returns what the array is made of."""

    def stream(self, array: A) -> int:
        """Returns the stream that works on the array, as for _ffi.Event. What it has been given so far is all that matters."""

    def empty(self, kind: Kind, device: int) -> A:
        """Returns a new array with any content. The stream of :meth:`stream` may use it."""

    def in_order(self, array: A) -> A:
        """Returns the array, or a contiguous copy."""

    def put(self, target: A, source: A) -> None:
        """Overwrites the elements of `target`, which need not be contiguous."""


class DeviceArray:
    """An array in a CUDA device's memory that belongs to no library: results for arrays of other libraries than CuPy and PyTorch.

    What takes DLPack or ``__cuda_array_interface__`` uses it without a copy: ``cupy.asarray(array)``, ``torch.from_dlpack(array)``,
    kernels of Numba. Scripts make none. The end of a result waits until the device does not use its memory any more.

    Args:
      view: what it is made of.
      owner: what keeps the memory alive.
      stream: the CUDA stream that works on the elements.

    Attributes:
      shape, ndim, size, nbytes, dtype: as numpy's; dtype is the text "bfloat16" if numpy lacks the type.
      device: the device's number.
    """

    def __init__(self, view: View, owner: object, stream: int = _LEGACY_STREAM) -> None:
        self.view = view
        self.owner = owner
        self.stream = stream
        self.shape = view.kind[0]
        self.ndim = len(self.shape)
        self.size = int(numpy.prod(self.shape, dtype=numpy.int64))
        self.nbytes = size_of(view.kind)
        self.device = view.device

    @property
    def dtype(self) -> Union[numpy.dtype, str]:
        """The element type; the text bfloat16 if numpy lacks it."""
        try:
            return numpy_dtype(self.view.kind[1])
        except ValueError:
            return self.view.kind[1]

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        shape, name = self.view.kind
        if name == "bfloat16":
            raise AttributeError("__cuda_array_interface__ has no bfloat16; use DLPack")
        # No stream: the elements are there when synchronize returns.
        pointer = (self.view.address, not self.view.is_writable)
        return {
            "shape": shape,
            "typestr": numpy.dtype(name).str,
            "data": pointer,
            "strides": None,
            "stream": None,
            "version": 3,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CUDA, self.device

    def __dlpack__(self, stream: Optional[int] = None, **_: object) -> object:
        return _ffi.new_dlpack(self.view.address, *self.view.kind, self.device, self)

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("The array is in a GPU's memory: cupy.asarray(array).get() copies it to the host.")

    def __reduce__(self) -> NoReturn:
        raise TypeError("A DeviceArray can't be pickled or copied; cupy.asarray(array) can.")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __getitem__(self, rows: slice) -> "DeviceArray":
        """Returns a view of the rows ``[:end]``."""
        if not self.shape or not isinstance(rows, slice) or rows.start not in (None, 0) or rows.step not in (None, 1):
            raise TypeError(
                "cupy.asarray(array) has what can be done with an array; this one can be cut as in array[:3]"
            )
        (count, *rest), name = self.view.kind
        shape = (len(range(count)[rows]), *rest)
        return DeviceArray(self.view._replace(kind=(shape, name)), self.owner, self.stream)

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.view.kind[1]}, device={self.device})"


def numpy_dtype(name: str) -> numpy.dtype:
    """Returns the dtype of this name. Raises ValueError if numpy lacks it."""
    try:
        if name == "bfloat16":
            importlib.import_module("ml_dtypes")  # numpy has the type from there
        return numpy.dtype(name)
    except (ImportError, TypeError) as error:
        raise ValueError("bfloat16 in host memory needs ml_dtypes: pip install ml_dtypes") from error


class _Lent:
    """Any library whose arrays speak DLPack or __cuda_array_interface__, and the arrays that belong to none."""

    contiguous = "a contiguous copy"

    def view(self, array: DeviceArray) -> View:
        return array.view

    def stream(self, array: DeviceArray) -> int:
        return array.stream

    def empty(self, kind: Kind, device: int) -> DeviceArray:
        size = size_of(kind)
        memory = _ffi.DeviceMemory(device, size) if size else None
        return DeviceArray(View(kind, memory.address if memory else 0, device, True), memory)

    def in_order(self, array: DeviceArray) -> DeviceArray:
        return array  # lend() takes no other

    def put(self, target: DeviceArray, source: DeviceArray) -> None:
        to, of, stream = target.view.address, source.view.address, self.stream(source)
        if self.stream(target) != stream:  # neither waits for the other
            _ffi.device_copy(target.device, self.stream(target), _ffi.ON_DEVICE, to, to, 0)
        _ffi.device_copy(target.device, stream, _ffi.ON_DEVICE, to, of, target.nbytes)


class _CuPy:
    contiguous = "cupy.ascontiguousarray"

    def __init__(self, module: ModuleType) -> None:
        self._cupy = module

    def view(self, array: Any) -> View:
        kind = tuple(array.shape), array.dtype.name
        return View(kind, array.data.ptr, array.device.id, array.flags.c_contiguous)

    def stream(self, array: Any) -> int:
        with array.device:
            stream = self._cupy.cuda.get_current_stream()
            if stream.ptr > _PER_THREAD_STREAM and stream.is_capturing():
                _refuse_capture()
            return int(stream.ptr)

    def empty(self, kind: Kind, device: int) -> Any:
        with self._cupy.cuda.Device(device):
            return self._cupy.empty(kind[0], numpy_dtype(kind[1]))

    def in_order(self, array: Any) -> Any:
        with array.device:
            return self._cupy.ascontiguousarray(array)

    def put(self, target: Any, source: Any) -> None:
        with target.device:
            target[...] = source


class _Torch:
    contiguous = "tensor.contiguous()"

    def __init__(self, module: ModuleType) -> None:
        self._torch = module

    def view(self, array: "torch.Tensor") -> View:
        kind = tuple(array.shape), str(array.dtype)[len("torch.") :]
        in_order = array.is_contiguous() and not array.is_neg() and not array.is_conj()
        return View(kind, array.data_ptr(), array.device.index, in_order)

    def stream(self, array: "torch.Tensor") -> int:
        cuda = self._torch.cuda
        with cuda.device(array.device):
            if cuda.is_current_stream_capturing():
                _refuse_capture()
            return int(cuda.current_stream().cuda_stream)

    def empty(self, kind: Kind, device: int) -> "torch.Tensor":
        result: torch.Tensor = self._torch.empty(kind[0], dtype=getattr(self._torch, kind[1]), device=f"cuda:{device}")
        return result

    def in_order(self, array: "torch.Tensor") -> "torch.Tensor":
        return array.resolve_conj().resolve_neg().contiguous()

    def put(self, target: "torch.Tensor", source: "torch.Tensor") -> None:
        target.copy_(source)


def _refuse_capture() -> None:
    raise RuntimeError(
        "A collective can't be captured in a CUDA graph, because the ranks agree on it each time; capture the computation alone, and "
        "call the collective outside of the capture."
    )


_lent = _Lent()
_libraries: dict[str, Library[Any]] = {}


def library_of(value: object) -> Optional[Library[Any]]:
    """Returns the library of an array that is in a device's memory and is used as it is; None for any other value."""
    if type(value) is numpy.ndarray:
        return None  # the most frequent kind
    if type(value) is DeviceArray:
        return _lent
    name = type(value).__module__.partition(".")[0]
    if name not in ("cupy", "torch"):
        return None
    module = sys.modules[name]
    if name == "cupy":
        return _kept(name, _CuPy, module) if isinstance(value, module.ndarray) else None
    if not isinstance(value, module.Tensor) or not value.is_cuda or value.layout is not module.strided:
        return None
    return None if value.requires_grad else _kept(name, _Torch, module)


def _kept(name: str, kind: Callable[[ModuleType], Library[Any]], module: ModuleType) -> Library[Any]:
    if name not in _libraries:
        _libraries[name] = kind(module)
    return _libraries[name]


def is_on_device(value: object) -> bool:
    """Returns whether the value is an array, of any library, in the memory of a CUDA device."""
    where = getattr(value, "__dlpack_device__", None)
    if where is not None:
        return where()[0] in (_CUDA, _CUDA_MANAGED)
    return hasattr(value, "__cuda_array_interface__")


def lend(value: object) -> Any:
    """Returns an array in a device's memory as one that :func:`library_of` knows, without a copy. Raises ValueError if it can't be
    used.
    """
    if library_of(value) is not None:
        return value
    try:
        return _by_dlpack(value) if hasattr(value, "__dlpack__") else _by_interface(value)
    except (BufferError, RuntimeError, TypeError) as error:
        raise ValueError(f"{type(value).__name__} can't be used: {error}") from error


def _by_dlpack(value: Any) -> DeviceArray:
    # From here on the legacy stream waits for what the library's stream has been given so far.
    lent = _ffi.read_dlpack(value.__dlpack__(stream=_LEGACY_STREAM))
    is_contiguous = _is_contiguous(lent.shape, lent.strides)
    return DeviceArray(View((lent.shape, lent.dtype), lent.address, lent.device, is_contiguous), value)


def _by_interface(value: Any) -> DeviceArray:
    lent = value.__cuda_array_interface__
    shape, dtype = tuple(lent["shape"]), numpy.dtype(lent["typestr"])
    if lent.get("mask") is not None or not dtype.isnative:
        raise ValueError("An array with a mask, or of another byte order, can't be used.")
    address, is_read_only = lent["data"]
    strides = lent.get("strides")
    counts = None if strides is None else tuple(stride // dtype.itemsize for stride in strides)
    device = _ffi.device_of(address) if address else 0
    view = View((shape, dtype.name), address or 0, device, _is_contiguous(shape, counts), not is_read_only)
    # Without a stream of its own, what the library does is on a default stream, or done.
    return DeviceArray(view, value, lent.get("stream") or _LEGACY_STREAM)


def _is_contiguous(shape: tuple[int, ...], strides: Optional[tuple[int, ...]]) -> bool:
    """Returns whether elements of this shape with these strides, in elements, follow each other in memory."""
    if strides is None or 0 in shape:
        return True
    expected = 1
    for count, stride in zip(reversed(shape), reversed(strides)):
        if count != 1 and stride != expected:
            return False
        expected *= count
    return True


def to_host(array: A, library: Library[A]) -> numpy.ndarray:
    """Returns a copy in host memory."""
    array = library.in_order(array)
    view = library.view(array)
    result = numpy.empty(view.kind[0], numpy_dtype(view.kind[1]))
    _copy(library, array, _ffi.TO_HOST, result.ctypes.data, view.address, result.nbytes)
    return result


def fill(array: A, library: Library[A], source: numpy.ndarray) -> None:
    """Overwrites an array with values in host memory."""
    source = numpy.ascontiguousarray(source)
    view = library.view(array)
    target = array if view.is_contiguous else library.empty(view.kind, view.device)
    _copy(library, target, _ffi.FROM_HOST, library.view(target).address, source.ctypes.data, source.nbytes)
    if target is not array:
        library.put(array, target)


def move(target: A, to: Library[A], source: Any, of: Library[Any]) -> None:
    """Overwrites an array with the values of another one of the same kind."""
    if to is of and to.view(target).device == of.view(source).device:
        to.put(target, source)
    else:
        fill(target, to, to_host(source, of))


def _copy(library: Library[A], array: A, way: int, to: int, source: int, size: int) -> None:
    if size:
        _ffi.device_copy(library.view(array).device, library.stream(array), way, to, source, size)
