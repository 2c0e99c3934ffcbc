"""Process groups: ranks that connect through a key-value store of the caller."""

import ctypes
from typing import Callable, Optional

from horovod._ffi._library import check, last_error, library
from horovod.common.exceptions import STILL_RUNNING, error_of_wait

_SetFunction = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64)
_GetFunction = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_double, ctypes.c_void_p, ctypes.c_int64
)
_NOT_SET, _FAILED = -1, -2


class _Store(ctypes.Structure):
    _fields_ = [("context", ctypes.c_void_p), ("set", _SetFunction), ("get", _GetFunction)]


class _Options(ctypes.Structure):
    _fields_ = [
        ("rank", ctypes.c_int32),
        ("size", ctypes.c_int32),
        ("address", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("timeout_seconds", ctypes.c_double),
    ]


def open_group(
    rank: int,
    size: int,
    address: str,
    name: str,
    timeout: float,
    set_value: Callable[[str, bytes], None],
    get_value: Callable[[str, float], Optional[bytes]],
) -> int:
    """Connects this process with the other ranks of a group, all of which must call it, and returns the group's number, which the
    functions for operations take in place of a process set's.

    Args:
      address: where the other ranks reach this process, numeric.
      name: of the group, for messages; "": the group of all ranks.
      timeout: seconds, for connecting and for the other ranks of an operation.
      set_value: sets a key of the store that the ranks share.
      get_value: waits for a key, for so many seconds, and returns its value; None: nobody has set it in time.

    Raises what the two functions raise, and an exception of :mod:`horovod.common.exceptions` if the ranks can't be connected.
    """
    failures: list[BaseException] = []

    def guarded_set(_: int, key: bytes, value: int, size: int) -> int:
        try:
            set_value(key.decode(), ctypes.string_at(value, size))
        except BaseException as error:  # must not reach the library, which has no exceptions of Python
            failures.append(error)
            return _FAILED
        return 0

    def guarded_get(_: int, key: bytes, seconds: float, value: int, room: int) -> int:
        try:
            found = get_value(key.decode(), seconds)
        except BaseException as error:
            failures.append(error)
            return _FAILED
        if found is None:
            return _NOT_SET
        ctypes.memmove(value, found, min(len(found), room))
        return len(found)

    options = _Options(rank, size, address.encode(), name.encode(), timeout)
    store = _Store(None, _SetFunction(guarded_set), _GetFunction(guarded_get))
    group = ctypes.c_int32()
    code = library.hvd_open_group(ctypes.byref(options), ctypes.byref(store), ctypes.byref(group))
    if failures:
        raise failures[0]
    check(code)
    return group.value


def abort_group(group: int, reason: str) -> None:
    """Breaks the group for all of its ranks; operations in flight fail with this reason."""
    check(library.hvd_abort_group(group, reason.encode()))


def close_group(group: int) -> None:
    """Leaves the group cleanly. Operations in flight fail; their handles stay valid."""
    check(library.hvd_close_group(group))


ANY_SOURCE = -1


def send(group: int, peer: int, tag: int, dtype: int, address: int, size: int) -> int:
    """Starts to send `size` bytes to a rank of the group, and returns the transfer's number. The memory must stay valid until it
    is done. `dtype` must be the same at both ends.
    """
    transfer = ctypes.c_int64()
    check(library.hvd_send(group, peer, tag, dtype, address, size, ctypes.byref(transfer)))
    return transfer.value


def receive(group: int, source: int, tag: int, dtype: int, address: int, size: int) -> int:
    """Starts to receive `size` bytes from a rank of the group, or :data:`ANY_SOURCE`; otherwise as :func:`send`."""
    transfer = ctypes.c_int64()
    check(library.hvd_receive(group, source, tag, dtype, address, size, ctypes.byref(transfer)))
    return transfer.value


def poll_transfer(transfer: int) -> bool:
    """Returns whether :func:`wait_transfer` would return at once."""
    done = ctypes.c_int32()
    check(library.hvd_poll_transfer(transfer, ctypes.byref(done)))
    return done.value != 0


def wait_transfer(transfer: int, seconds: float) -> Optional[int]:
    """Waits, without the GIL, for so many seconds, and one at most. Returns the rank that has sent what was received; None: the
    transfer is not done. Raises an exception of :mod:`horovod.common.exceptions` if it has failed, or what a signal handler raises.
    """
    source = ctypes.c_int32(-1)
    code = library.hvd_wait_transfer(transfer, seconds, ctypes.byref(source))
    if code == STILL_RUNNING:
        return None
    if code != 0:
        raise error_of_wait(code, last_error())
    return source.value


def forget_transfer(transfer: int) -> None:
    """Forgets the number. A transfer that is not done goes on, and uses its memory."""
    library.hvd_forget_transfer(transfer)
