"""Memory, given by its address."""

import ctypes
import math
import mmap
import re
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Protocol, Union

if TYPE_CHECKING:
    from typing_extensions import Buffer

    class SizedBuffer(Buffer, Protocol):
        """A buffer that knows its length."""

        def __len__(self) -> int: ...


_HUGE_PAGE = 2 << 20
_MADV_HUGEPAGE = 14
_MADV_POPULATE_WRITE = 23

_libc = ctypes.CDLL(None)


def new_memory(size: int) -> mmap.mmap:
    """Returns `size` (> 0) bytes of new memory, in huge pages if the system provides them. Pages are allocated at first use, and
    freed with the last view of them.
    """
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    prefer_huge_pages(address_of_buffer(memory), size)
    return memory


_LARGE_BYTES = 1 << 20


def zeros(size: int) -> Union[mmap.mmap, bytearray]:
    """Returns a new buffer of `size` bytes, all 0; a large one from :func:`new_memory`."""
    return new_memory(size) if size >= _LARGE_BYTES else bytearray(size)


def take_new_memory(memory: mmap.mmap) -> None:
    """Allocates the pages of new memory now, if possible; its content stays. Releases the GIL."""
    _advise(address_of_buffer(memory), len(memory), mmap.PAGESIZE, _MADV_POPULATE_WRITE)


def address_of_buffer(memory: "SizedBuffer") -> int:
    """Returns the address of a writable buffer, which is valid while the buffer exists; 0 for an empty buffer."""
    if len(memory) == 0:
        return 0
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def prefer_huge_pages(address: int, size: int) -> None:
    """Requests huge pages for memory that nobody has written to yet, for the whole ones that it contains: clearing many small
    pages takes longer than filling them.
    """
    _advise(address, size, _HUGE_PAGE, _MADV_HUGEPAGE)


class _DLDevice(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("index", ctypes.c_int32)]


class _DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _DLManagedTensor(ctypes.Structure):
    """The structure of DLPack by which array libraries exchange memory. It begins with its DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", _DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    ]


_DL_CPU, _DL_CUDA = 1, 2
_DL_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "complex": 5, "bool": 6}
_DL_NAME = b"dltensor"  # capsules keep its address

# Functions of our own, not the attributes of ctypes.pythonapi: JAX gives those other argument types.
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_capsule_address = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


_is_named = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))

# Capsules with their structures and owners, by the structures' addresses: for tensors that still exist, and capsules that may still
# be taken.
_in_use: dict[int, tuple[object, _DLManagedTensor, object]] = {}
_look_at = 1  # the size of _in_use at which capsules that nobody can take any more are looked for


def _forget(address: int) -> None:
    _in_use.pop(address, None)


_deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_forget)


def _drop_untaken() -> None:
    """Forgets the capsules that nobody has taken, and to which nobody else refers. A destructor of the capsules can't do it: it would
    be Python code, which must not run while an exception is on its way.
    """
    global _look_at
    if len(_in_use) < _look_at:
        return
    for address in list(_in_use):
        capsule = _in_use[address][0]
        # Whoever takes a capsule gives it another name. The references: of the dict, of the variable, of the call.
        if sys.getrefcount(capsule) <= 3 and _is_named(capsule, _DL_NAME):
            del _in_use[address]
    _look_at = max(2 * len(_in_use), 1)


def as_dlpack(address: int, size: int, device: int) -> Any:
    """Returns a DLPack capsule for `size` bytes at `address`, in the memory of that CUDA device or of the host (:data:`HOST`).
    The memory must stay valid while anything made from the capsule exists.
    """
    return new_dlpack(address, (size,), "uint8", device)


def new_dlpack(address: int, shape: tuple[int, ...], dtype: str, device: int, owner: object = None) -> Any:
    """Returns a DLPack capsule for an array at `address`, as for :func:`as_dlpack`; it keeps `owner` alive. `dtype` is numpy's name."""
    tensor = _DLManagedTensor(
        address,
        _DLDevice(_DL_CPU, 0) if device < 0 else _DLDevice(_DL_CUDA, device),
        len(shape),
        _dl_type(dtype),
        (ctypes.c_int64 * len(shape))(*shape),
        deleter=_deleter,
    )
    _drop_untaken()
    own_address = ctypes.addressof(tensor)
    capsule = _new_capsule(own_address, _DL_NAME, None)
    _in_use[own_address] = capsule, tensor, owner
    return capsule


def _dl_type(dtype: str) -> _DLDataType:
    name, bits = re.fullmatch(r"([a-z]+)(\d*)", dtype).groups()  # type: ignore[union-attr]  # numpy's names are such
    return _DLDataType(_DL_CODES[name], int(bits or 8), 1)


class LentArray(NamedTuple):
    """What a DLPack capsule has. `dtype` is numpy's name; `strides` are in elements, None: contiguous."""

    address: int
    shape: tuple[int, ...]
    strides: Optional[tuple[int, ...]]
    dtype: str
    device: int


def read_dlpack(capsule: object) -> LentArray:
    """Returns what a DLPack capsule has, which stays its owner's. Raises BufferError for element types that numpy has no name for."""
    tensor = _DLManagedTensor.from_address(_capsule_address(capsule, _DL_NAME))
    code, bits, lanes = tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes
    names = [name for name, number in _DL_CODES.items() if number == code]
    if not names or lanes != 1:
        raise BufferError(f"DLPack's element type {code} of {bits} bits has no name in numpy")
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None
    address = (tensor.data or 0) + tensor.byte_offset if math.prod(shape) else 0
    return LentArray(
        address, shape, strides, names[0] if code == _DL_CODES["bool"] else f"{names[0]}{bits}", tensor.device.index
    )


def _advise(address: int, size: int, unit: int, advice: int) -> None:
    """Gives the advice to the system for the whole pages in that memory."""
    start = -(-address // unit) * unit
    size = (address + size - start) // unit * unit
    if size > 0:
        _libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), advice)
