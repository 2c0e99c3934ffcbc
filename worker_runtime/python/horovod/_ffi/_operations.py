"""Operations: requests, waiting for them, and the memory of their results."""

import ctypes
import os
import sys
from typing import Any, NamedTuple, Optional, Sequence, Tuple

from horovod._ffi._library import check, library

# Operations.
ALLREDUCE, ALLGATHER, BROADCAST, ALLTOALL, REDUCESCATTER, BARRIER, JOIN, COMMIT = range(8)
# Element types.
UINT8, INT8, INT16, INT32, INT64, FLOAT16, BFLOAT16, FLOAT32, FLOAT64, BOOL = range(10)
# Reductions.
AVERAGE, SUM, ADASUM, MIN, MAX, PRODUCT = range(6)


class Request(ctypes.Structure):
    """One tensor of one operation. `shape`, `splits` and the memory pointed to are kept alive by
    the caller."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("op", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("reduction", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("input", ctypes.c_void_p),
        ("output", ctypes.c_void_p),
        ("prescale", ctypes.c_double),
        ("postscale", ctypes.c_double),
        ("root_rank", ctypes.c_int32),
        ("splits_count", ctypes.c_int32),
        ("splits", ctypes.POINTER(ctypes.c_int32)),
    ]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("ndim", ctypes.c_int32),
        ("received_splits_count", ctypes.c_int32),
        ("received_splits", ctypes.POINTER(ctypes.c_int32)),
        ("last_joined_rank", ctypes.c_int32),
        ("world_is_changing", ctypes.c_int32),
    ]


class Result(NamedTuple):
    """What became of one tensor. `address` is 0 if the tensor is empty or the result is the
    request's own output."""

    address: int
    shape: Tuple[int, ...]
    received_splits: Tuple[int, ...]
    last_joined_rank: int
    world_is_changing: bool  # of a commit: the same on every rank


def request(
    name: str,
    op: int,
    dtype: int = UINT8,
    shape: Sequence[int] = (),
    input_address: int = 0,
    output_address: int = 0,
    reduction: int = SUM,
    prescale: float = 1.0,
    postscale: float = 1.0,
    root_rank: int = 0,
    splits: Sequence[int] = (),
) -> Request:
    """One :class:`Request`; addresses of 0 are NULL."""
    ndim = len(shape)
    return Request(
        name.encode(),
        op,
        dtype,
        ndim,
        reduction,
        (ctypes.c_int64 * ndim)(*shape) if ndim else None,
        input_address or None,
        output_address or None,
        prescale,
        postscale,
        root_rank,
        len(splits),
        (ctypes.c_int32 * len(splits))(*splits) if splits else None,
    )


def submit(requests: Sequence[Request], process_set: int = 0) -> int:
    """Hands over tensors as one group, to be run by that process set, and returns its handle."""
    handle = ctypes.c_int64()
    count = len(requests)
    array = requests[0] if count == 1 else (Request * count)(*requests)
    check(library.hvd_submit(ctypes.byref(array), count, process_set, ctypes.byref(handle)))
    return handle.value


def poll(handle: int) -> bool:
    """Whether :func:`wait` would return at once."""
    done = ctypes.c_int32()
    check(library.hvd_poll(handle, ctypes.byref(done)))
    return done.value != 0


def wait(handle: int) -> None:
    """Blocks, without Python's lock, until the group is done."""
    check(library.hvd_wait(handle))


def result(handle: int, index: int) -> Result:
    """What became of the group's tensor number `index`. REQUIRES: :func:`wait` returned."""
    tensor = _Tensor()
    check(library.hvd_result(handle, index, ctypes.byref(tensor)))
    return Result(
        tensor.data or 0,
        tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else (),
        (
            tuple(tensor.received_splits[: tensor.received_splits_count])
            if tensor.received_splits_count
            else ()
        ),
        tensor.last_joined_rank,
        tensor.world_is_changing != 0,
    )


def release(handle: int) -> None:
    """Forgets the group; waits for it first if it is in flight."""
    library.hvd_release(handle)


def address_of(data: bytes) -> int:
    """Where `data` lies, as long as it lives."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value


class ResultOwner:
    """Releases a group when the last buffer made of its results is gone."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._pid = os.getpid()

    def __del__(self) -> None:
        # A forked child has a copy of this object but not the library's threads; a dying
        # interpreter frees all.
        if sys is not None and not sys.is_finalizing() and os.getpid() == self._pid:
            library.hvd_release(self._handle)


def memory(address: int, size: int, owner: Optional[ResultOwner] = None) -> Any:
    """`size` (> 0) bytes at `address` as a writable buffer, which keeps `owner` alive."""
    view = (ctypes.c_char * size).from_address(address)
    view.owner = owner
    return view


def keep_for_ever(thing: Any) -> None:
    """Makes `thing` outlive the interpreter: memory that another thread may write to while the
    process ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
