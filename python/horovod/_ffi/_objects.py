"""Seals of pickled objects that are sent between ranks."""

import ctypes
from collections.abc import Sequence

from horovod._ffi._library import library
from horovod._ffi._operations import check_waited

SEAL_BYTES = 32


def seal(name: str, process_set: int, address: int, size: int) -> None:
    """Writes a seal of SEAL_BYTES bytes after the object of `size` bytes at `address`, which this rank sends with the operation
    `name` of these ranks.
    """
    check_waited(library.hvd_seal(name.encode(), process_set, address, size))


def open_sealed(
    name: str,
    process_set: int,
    senders: Sequence[int],
    addresses: Sequence[int],
    sizes: Sequence[int],
) -> None:
    """Verifies all objects of an operation. Each is followed by its seal (`sizes` includes it) and comes from the rank in the
    world that `senders` names. Every rank calls it once per operation, senders included.

    Raises HorovodInternalError if an object was changed on the way; the world is broken then, and the object must not be
    unpickled.
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
