"""Seals of objects that are unpickled where they arrive."""

import ctypes
from collections.abc import Sequence

from horovod._ffi._library import library
from horovod._ffi._operations import check_waited

SEAL_BYTES = 32


def seal(name: str, process_set: int, address: int, size: int) -> None:
    """Writes a seal, SEAL_BYTES long, behind the object of `size` bytes at `address`, which this
    rank gives to the operation `name` of these ranks."""
    check_waited(library.hvd_seal(name.encode(), process_set, address, size))


def open_sealed(
    name: str,
    process_set: int,
    senders: Sequence[int],
    addresses: Sequence[int],
    sizes: Sequence[int],
) -> None:
    """Checks all objects of an operation, each with its seal behind it (both counted in `sizes`)
    and from the rank of the world that `senders` names. Every rank calls it once an operation, who
    has sent as well.

    HorovodInternalError: one was changed on the way; the world is broken. It must not be unpickled.
    """
    count = len(senders)
    check_waited(
        library.hvd_open(
            name.encode(),
            process_set,
            (ctypes.c_int32 * count)(*senders),
            (ctypes.c_void_p * count)(*addresses),
            (ctypes.c_int64 * count)(*sizes),
            count,
        )
    )
