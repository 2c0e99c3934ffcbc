"""Operations: requests, waiting for them, and the memory of their results."""

import array
import ctypes
import functools
import itertools
import os
import sys
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, Optional

from horovod._ffi._library import check, last_error, library
from horovod.common.exceptions import STILL_RUNNING, error_of_status, error_of_wait

# Operations.
ALLREDUCE, ALLGATHER, BROADCAST, ALLTOALL, REDUCESCATTER, BARRIER, JOIN, COMMIT = range(8)
HOST = -1  # instead of a device
FIRST_HANDLE = 1000  # larger than any status code
# Element types.
UINT8, INT8, INT16, INT32, INT64, FLOAT16, BFLOAT16, FLOAT32, FLOAT64, BOOL = range(10)
# Reductions.
AVERAGE, SUM, ADASUM, MIN, MAX, PRODUCT = range(6)

_A_WHILE = 1.0  # seconds: the library waits no longer before it lets handlers of signals run


class Request(ctypes.Structure):
    """One tensor of one operation. The caller keeps `shape`, `splits` and the memory at its addresses alive."""

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
        ("device", ctypes.c_int32),
        ("ready_event", ctypes.c_void_p),
        ("output_bytes", ctypes.c_int64),
        ("meaning", ctypes.c_char_p),
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
    """The result for one tensor. `address` is that of the request's own output or of memory of the runtime on the same device; it
    may be 0 for an empty tensor.
    """

    address: int
    shape: tuple[int, ...]
    received_splits: tuple[int, ...]
    last_joined_rank: int
    world_is_changing: bool  # of a commit: the same on every rank


@functools.cache
def _array_of(count: int) -> Any:
    return ctypes.c_int64 * count


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
    device: int = HOST,
    ready_event: int = 0,
    meaning: str = "",
) -> Request:
    """Returns a :class:`Request`. Addresses of 0 are NULL. `device`: the CUDA device of the memory. `meaning`: what the caller makes
    of the operation, in which the ranks must not differ.
    """
    ndim = len(shape)
    return Request(
        name.encode(),
        op,
        dtype,
        ndim,
        reduction,
        _array_of(ndim)(*shape) if ndim else None,
        input_address or None,
        output_address or None,
        prescale,
        postscale,
        root_rank,
        len(splits),
        (ctypes.c_int32 * len(splits))(*splits) if splits else None,
        device,
        ready_event or None,
        0,
        meaning.encode() if meaning else None,
    )


def _reference(requests: Sequence[Request]) -> object:
    count = len(requests)
    return ctypes.byref(requests[0] if count == 1 else (Request * count)(*requests))


def new_handle() -> ctypes.c_int64:
    """Returns an object for the handle that :func:`submit` creates; its `value` is 0 until then."""
    return ctypes.c_int64()


def submit(requests: Sequence[Request], process_set: int, waits: bool, handle: ctypes.c_int64) -> None:
    """Submits tensors as one group to that process set; `handle` receives the group's number. With `waits` it waits for a while
    without the GIL; :func:`wait` returns the outcome. Meanwhile a signal handler may raise any exception.
    """
    check(library.hvd_submit(_reference(requests), len(requests), process_set, int(waits), ctypes.byref(handle)))


# What the library calls; the functions that were submitted, by their context.
_DoneFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32)
_callbacks: dict[int, Callable[[int, Optional[BaseException]], None]] = {}
_contexts = itertools.count(1)


def _call(context: int, handle: int, status: int) -> None:
    done = _callbacks.pop(context)
    done(handle, error_of_wait(status, last_error()) if status else None)


_call_back = _DoneFunction(_call)


def submit_then(
    requests: Sequence[Request],
    process_set: int,
    done: Callable[[int, Optional[BaseException]], None],
) -> None:
    """Submits as :func:`submit` does, for callers that do not wait: calls ``done(handle, error)`` once, on a thread of the library,
    when the group is done. `error` is the exception that :func:`wait` would have raised, or None. `done` must :func:`release`
    the handle. See hvd_submit_then.
    """
    context = next(_contexts)
    _callbacks[context] = done
    code = library.hvd_submit_then(_reference(requests), len(requests), process_set, _call_back, context)
    if code != 0:
        del _callbacks[context]
    check(code)


class Prepared:
    """A group of tensors that is submitted repeatedly: its requests, without addresses."""

    __slots__ = ("address",)

    def __init__(self, requests: Sequence[Request]) -> None:
        self.address = 0
        address = ctypes.c_void_p()
        check(library.hvd_prepare(_reference(requests), len(requests), ctypes.byref(address)))
        self.address = address.value or 0

    def __del__(self) -> None:
        if library is not None and self.address:
            library.hvd_forget(self.address)


def _check_handle(handle: int) -> int:
    if handle < 0:
        raise error_of_status(-handle, last_error())
    return handle


def start(prepared: Prepared, name: str, input_address: int, output_address: int, process_set: int) -> int:
    """Submits a prepared tensor under this name; addresses of 0 are NULL. Otherwise as :func:`submit`."""
    return _check_handle(library.hvd_start(prepared.address, name.encode(), input_address, output_address, process_set))


def start_group(prepared: Prepared, inputs: Sequence[int], outputs: Sequence[int], process_set: int) -> int:
    """Submits a prepared group, with the addresses of its tensors. Otherwise as :func:`submit`."""
    inputs, outputs = array.array("Q", inputs), array.array("Q", outputs)
    return _check_handle(
        library.hvd_start_group(prepared.address, inputs.buffer_info()[0], outputs.buffer_info()[0], process_set)
    )


def run(prepared: Prepared, name: str, input_address: int, output_address: int, process_set: int) -> int:
    """Does :func:`start`, :func:`wait` and :func:`release` in one call. Returns a code for :func:`check_run` or, if it takes long,
    the handle, which is at least :data:`FIRST_HANDLE`. Raises only what a signal handler raises; then it is unknown whether the
    operation runs.
    """
    code: int = library.hvd_run(prepared.address, name.encode(), input_address, output_address, process_set)
    return code


def check_run(code: int) -> None:
    """Raises what :func:`start` or :func:`wait` would have raised."""
    if code < 0:
        raise error_of_status(-code, last_error())
    check_waited(code)


def check_waited(code: int) -> None:
    """Raises the error of this thread's last call, which waited.

    HorovodRequestError: the ranks' requests do not match. HorovodInternalError: the world is broken.
    """
    if code != 0:
        raise error_of_wait(code, last_error())


def broadcast_stretches(
    name: str,
    addresses: Sequence[int],
    sizes: Sequence[int],
    root_rank: int,
    process_set: int = 0,
    append: bool = False,
) -> int:
    """Submits a broadcast of memory at several addresses, with the same sizes on all ranks, and returns its handle. `append`: the
    data is also appended to the store, as by :func:`store_append`.
    """
    starts, lengths = array.array("Q", addresses), array.array("q", sizes)
    handle = ctypes.c_int64()
    check(
        library.hvd_broadcast_stretches(
            name.encode(),
            ctypes.c_void_p(starts.buffer_info()[0]),
            ctypes.c_void_p(lengths.buffer_info()[0]),
            len(starts),
            root_rank,
            process_set,
            int(append),
            ctypes.byref(handle),
        )
    )
    return handle.value


def poll(handle: int) -> bool:
    """Returns whether :func:`wait` would return at once."""
    done = ctypes.c_int32()
    check(library.hvd_poll(handle, ctypes.byref(done)))
    return done.value != 0


def wait(handle: int) -> None:
    """Blocks, without the GIL, until the group is done. Raises as :func:`check_waited`, or what a signal handler raises, such as
    KeyboardInterrupt.
    """
    code = library.hvd_wait(handle, _A_WHILE)
    while code == STILL_RUNNING:
        code = library.hvd_wait(handle, _A_WHILE)
    check_waited(code)


def wait_a_while(handle: int, seconds: float) -> bool:
    """Waits, without the GIL, for so many seconds, and one at most; returns whether the group is done. Raises only what a signal
    handler raises.
    """
    code: int = library.hvd_wait(handle, seconds)
    return code != STILL_RUNNING


def result(handle: int, index: int) -> Result:
    """Returns the result of the group's tensor number `index`. REQUIRES: :func:`wait` has returned."""
    tensor = _Tensor()
    check(library.hvd_result(handle, index, ctypes.byref(tensor)))
    return Result(
        tensor.data or 0,
        tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else (),
        (tuple(tensor.received_splits[: tensor.received_splits_count]) if tensor.received_splits_count else ()),
        tensor.last_joined_rank,
        tensor.world_is_changing != 0,
    )


def release(handle: int) -> None:
    """Frees the group; waits for it first if it is in flight."""
    library.hvd_release(handle)


def address_of(data: bytes) -> int:
    """Returns the address of `data`, which is valid while `data` exists."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


def finish(handles: Sequence[int]) -> None:
    """Waits for all of the groups and releases them; raises their first error. If a signal handler raises an exception, none is
    released.
    """
    count = len(handles)
    array = (ctypes.c_int64 * count)(*handles)
    code = library.hvd_finish(array, count)
    while code == STILL_RUNNING:
        code = library.hvd_finish(array, count)
    check_waited(code)


class ResultOwner:
    """Releases a group when the last buffer made from its results is gone."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._pid = os.getpid()

    def __del__(self) -> None:
        # A forked child has a copy of this object but not the library's threads; a dying
        # interpreter frees all.
        if sys is not None and not sys.is_finalizing() and os.getpid() == self._pid:
            library.hvd_release(self._handle)


def memory(address: int, size: int, owner: object = None) -> "ctypes.Array[ctypes.c_char]":
    """Returns `size` (> 0) bytes at `address` as a writable buffer, which keeps `owner` alive."""
    view = (ctypes.c_char * size).from_address(address)
    view.owner = owner  # type: ignore[attr-defined]  # arrays of ctypes take any attribute
    return view


def keep_for_ever(thing: object) -> None:
    """Makes `thing` outlive the interpreter, for memory that another thread may write to while the process ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
