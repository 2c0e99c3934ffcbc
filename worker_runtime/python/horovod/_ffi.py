"""The C ABI of libhvd.so, and the only place that uses ctypes.

Mirrors ``worker_runtime/api/hvd_c_api.h``: structures, functions and status codes. Status codes
other than OK become the exceptions of :mod:`horovod.common.exceptions`.
"""

import ctypes
import os
import sys
from typing import Any, NamedTuple, Optional, Sequence, Tuple

from horovod.common.exceptions import error_of_status

_ABI_VERSION = 6

# Operations.
ALLREDUCE, ALLGATHER, BROADCAST, ALLTOALL, REDUCESCATTER, BARRIER, JOIN, COMMIT = range(8)
# Element types.
UINT8, INT8, INT16, INT32, INT64, FLOAT16, BFLOAT16, FLOAT32, FLOAT64, BOOL = range(10)
# Reductions.
AVERAGE, SUM, ADASUM, MIN, MAX, PRODUCT = range(6)

_OK = 0
_NOT_FOUND = 5
_ALREADY_EXISTS = 6
_RESOURCE_EXHAUSTED = 8
_UNIMPLEMENTED = 12


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


def _library_path() -> str:
    """Where libhvd.so is: the environment variable HOROVOD_LIBRARY, else ``horovod/lib/`` of this
    package."""
    chosen = os.environ.get("HOROVOD_LIBRARY")
    if chosen:
        return chosen
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "libhvd.so")


def _declare(library: ctypes.CDLL) -> None:
    int32, int64 = ctypes.c_int32, ctypes.c_int64
    queries = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size")
    actions = ("init", "shutdown", "join_world", "reset", "stop_timeline")
    states = ("is_initialized", "is_homogeneous", "is_deferred")
    states += ("world_is_changing", "must_sync_state")
    for name in queries + actions + states:
        getattr(library, "hvd_" + name).argtypes = []
        getattr(library, "hvd_" + name).restype = int32
    library.hvd_epoch.argtypes, library.hvd_epoch.restype = [], int64
    library.hvd_set_commit.argtypes, library.hvd_set_commit.restype = [int64], None
    library.hvd_last_error.argtypes, library.hvd_last_error.restype = [], ctypes.c_char_p
    library.hvd_version.argtypes, library.hvd_version.restype = [], ctypes.c_char_p
    for name, argtypes in (
        ("submit", [ctypes.c_void_p, int32, int32, ctypes.POINTER(int64)]),
        ("add_process_set", [ctypes.POINTER(int32), int32, ctypes.POINTER(int32)]),
        ("remove_process_set", [int32]),
        ("member", [int32, ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint64)]),
        ("poll", [int64, ctypes.POINTER(int32)]),
        ("wait", [int64]),
        ("result", [int64, int32, ctypes.POINTER(_Tensor)]),
        ("release", [int64]),
        ("store_begin", [int64, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]),
        ("store_append", [ctypes.c_void_p, ctypes.c_void_p, int32]),
        ("store_seal", [int64]),
        (
            "store_newest",
            [ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(int64), ctypes.POINTER(int64)],
        ),
        ("start_timeline", [ctypes.c_char_p, int32]),
        ("stack_request", [ctypes.POINTER(int32), ctypes.POINTER(int32)]),
        ("report_failure", [ctypes.c_char_p, int32]),
        ("built", [ctypes.c_char_p]),
    ):
        getattr(library, "hvd_" + name).argtypes = argtypes
        getattr(library, "hvd_" + name).restype = int32


def _load() -> ctypes.CDLL:
    path = _library_path()
    # LOCAL and DEEPBIND: the library's gRPC and Protobuf and those of a framework must not see each
    # other.
    mode = os.RTLD_NOW | os.RTLD_LOCAL | getattr(os, "RTLD_DEEPBIND", 0)
    try:
        library = ctypes.CDLL(path, mode=mode)
        library.hvd_abi_version.argtypes, library.hvd_abi_version.restype = [], ctypes.c_int32
        found = library.hvd_abi_version()
    except (OSError, AttributeError) as error:
        raise ImportError(
            "Horovod's runtime library could not be loaded from {}: {}".format(path, error)
        ) from error
    if found != _ABI_VERSION:
        raise ImportError(
            "{} has ABI version {}, but this Python package needs {}; they come from different "
            "versions of Horovod".format(path, found, _ABI_VERSION)
        )
    _declare(library)
    return library


_library = _load()


def _check(code: int) -> None:
    if code != _OK:
        raise error_of_status(code, _library.hvd_last_error().decode("utf-8", "replace"))


def init() -> None:
    """Joins the next world. Blocks until all members are there, unless the process is deferred."""
    _check(_library.hvd_init())


def is_deferred() -> bool:
    """Whether :func:`init` gave this process only a provisional place: the others are training."""
    return _library.hvd_is_deferred() != 0


def join_world() -> None:
    """Makes a deferred process a member of the next world. Blocks until that is up."""
    _check(_library.hvd_join_world())


def reset() -> None:
    """Leaves the present world, which is broken or about to change, for the next one; blocks."""
    _check(_library.hvd_reset())


def set_commit(number: int) -> None:
    """Says which commit this process can restore, 0 for none: the next world's rank 0 has the
    newest."""
    _library.hvd_set_commit(number)


class Stored(NamedTuple):
    """A commit in the store: memory that stays readable."""

    number: int
    address: int
    size: int


def store_begin(size: int, keep: int = 0) -> Optional[int]:
    """Makes room for a commit in the memory that outlives this process: where it is going to be,
    but neither where the newest one is nor in the one that `keep` (0: none) is an address of. None
    if there is no such memory.

    Raises MemoryError if there is too little of it.
    """
    address = ctypes.c_void_p()
    code = _library.hvd_store_begin(size, keep or None, ctypes.byref(address))
    if code == _UNIMPLEMENTED:
        return None
    if code == _RESOURCE_EXHAUSTED:
        raise MemoryError(_library.hvd_last_error().decode("utf-8", "replace"))
    _check(code)
    return address.value


def address_of(data: bytes) -> int:
    """Where `data` lies, as long as it lives."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value


def store_append(addresses: Sequence[int], sizes: Sequence[int]) -> None:
    """Copies parts into the commit that was begun, each to the next multiple of 64 bytes."""
    count = len(addresses)
    _check(
        _library.hvd_store_append(
            (ctypes.c_void_p * count)(*addresses), (ctypes.c_int64 * count)(*sizes), count
        )
    )


def store_seal(number: int) -> None:
    """Makes what was begun the newest commit in the store."""
    _check(_library.hvd_store_seal(number))


def store_newest() -> Optional[Stored]:
    """The newest commit in the store, of this process or of one before it in its place."""
    address, size, number = ctypes.c_void_p(), ctypes.c_int64(), ctypes.c_int64()
    code = _library.hvd_store_newest(*map(ctypes.byref, (address, size, number)))
    if code in (_UNIMPLEMENTED, _NOT_FOUND):
        return None
    _check(code)
    return Stored(number.value, address.value, size.value)


def must_sync_state() -> bool:
    """Whether some member of this world lacks rank 0's state. The same on every rank."""
    return _library.hvd_must_sync_state() != 0


def shutdown() -> None:
    """Leaves the world in good order, if there is one."""
    _check(_library.hvd_shutdown())


def query(what: str) -> int:
    """``hvd_<what>()``: a number; -1 if there is no world (ranks and sizes)."""
    return getattr(_library, "hvd_" + what)()


def version() -> str:
    """The version of the library."""
    return _library.hvd_version().decode()


def built(what: str) -> int:
    """Whether the library can do `what` ("gloo", "nccl", ...)."""
    return _library.hvd_built(what.encode())


def world_is_changing() -> bool:
    """Whether the epoch is broken or about to change. One load, no communication."""
    return _library.hvd_world_is_changing() != 0


def start_timeline(path: str, mark_cycles: bool) -> None:
    """On rank 0: makes all ranks record what they do, for the file `path`."""
    _check(_library.hvd_start_timeline(os.fsencode(path), int(mark_cycles)))


def stop_timeline() -> None:
    """On rank 0: ends the recording; blocks until the file is complete."""
    _check(_library.hvd_stop_timeline())


def stack_request() -> Optional[Tuple[int, int]]:
    """The descriptor that this process is to write its stack to, and the signal on which; None if
    nobody wants it."""
    fd, signum = ctypes.c_int32(), ctypes.c_int32()
    code = _library.hvd_stack_request(ctypes.byref(fd), ctypes.byref(signum))
    if code == _NOT_FOUND:
        return None
    _check(code)
    return fd.value, signum.value


def report_failure(message: str, caused_by_peer: bool) -> None:
    """Tells the daemon why this process is about to fail. Best effort; takes at most a second."""
    _library.hvd_report_failure(message.encode("utf-8", "replace"), int(caused_by_peer))


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


def add_process_set(ranks: Sequence[int]) -> Tuple[int, bool]:
    """Registers a process set, with all other ranks; blocks. Its id, and whether it is new: if not,
    that of the set that has these ranks."""
    process_set_id = ctypes.c_int32()
    count = len(ranks)
    code = _library.hvd_add_process_set(
        (ctypes.c_int32 * count)(*ranks), count, ctypes.byref(process_set_id)
    )
    if code != _ALREADY_EXISTS:
        _check(code)
    return process_set_id.value, code == _OK


def remove_process_set(process_set_id: int) -> None:
    """Ends a process set, with all other ranks; blocks."""
    _check(_library.hvd_remove_process_set(process_set_id))


def member(rank: int) -> Tuple[int, int]:
    """Which process `rank` of the present world is, the same in any world."""
    worker, incarnation = ctypes.c_uint64(), ctypes.c_uint64()
    _check(_library.hvd_member(rank, ctypes.byref(worker), ctypes.byref(incarnation)))
    return worker.value, incarnation.value


def submit(requests: Sequence[Request], process_set: int = 0) -> int:
    """Hands over tensors as one group, to be run by that process set, and returns its handle."""
    handle = ctypes.c_int64()
    count = len(requests)
    array = requests[0] if count == 1 else (Request * count)(*requests)
    _check(_library.hvd_submit(ctypes.byref(array), count, process_set, ctypes.byref(handle)))
    return handle.value


def poll(handle: int) -> bool:
    """Whether :func:`wait` would return at once."""
    done = ctypes.c_int32()
    _check(_library.hvd_poll(handle, ctypes.byref(done)))
    return done.value != 0


def wait(handle: int) -> None:
    """Blocks, without Python's lock, until the group is done."""
    _check(_library.hvd_wait(handle))


def result(handle: int, index: int) -> Result:
    """What became of the group's tensor number `index`. REQUIRES: :func:`wait` returned."""
    tensor = _Tensor()
    _check(_library.hvd_result(handle, index, ctypes.byref(tensor)))
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
    _library.hvd_release(handle)


class ResultOwner:
    """Releases a group when the last buffer made of its results is gone."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._pid = os.getpid()

    def __del__(self) -> None:
        # A forked child has a copy of this object but not the library's threads; a dying
        # interpreter frees all.
        if sys is not None and not sys.is_finalizing() and os.getpid() == self._pid:
            _library.hvd_release(self._handle)


def memory(address: int, size: int, owner: Optional[ResultOwner] = None) -> Any:
    """`size` (> 0) bytes at `address` as a writable buffer, which keeps `owner` alive."""
    view = (ctypes.c_char * size).from_address(address)
    view.owner = owner
    return view


def keep_for_ever(thing: Any) -> None:
    """Makes `thing` outlive the interpreter: memory that another thread may write to while the
    process ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
