"""The store: memory owned by the agent, in which commits outlive this process."""

import array
import ctypes
from collections.abc import Sequence
from typing import NamedTuple, Optional

from horovod._ffi._library import check, last_error, library
from horovod.common.exceptions import NOT_FOUND, RESOURCE_EXHAUSTED, UNIMPLEMENTED


class Stored(NamedTuple):
    """A commit in the store, in memory that stays readable."""

    number: int
    address: int
    size: int


def store_is_there() -> bool:
    """Returns whether there is a store."""
    return bool(library.hvd_store_append(None, None, 0) == 0)


def store_begin(size: int, keep: int = 0) -> int:
    """Reserves room for a commit and returns its address. It overwrites neither the newest commit nor the one that contains the
    address `keep` (0: none).

    Raises MemoryError if there is too little memory.
    """
    address = ctypes.c_void_p()
    code = library.hvd_store_begin(size, keep or None, ctypes.byref(address))
    if code == RESOURCE_EXHAUSTED:
        raise MemoryError(last_error())
    check(code)
    return address.value or 0


def store_append(addresses: Sequence[int], sizes: Sequence[int]) -> None:
    """Copies parts into the commit that was begun, each to the next multiple of 64 bytes. Several threads copy, and the GIL is
    released.
    """
    starts, lengths = array.array("Q", addresses), array.array("q", sizes)
    check(library.hvd_store_append(starts.buffer_info()[0], lengths.buffer_info()[0], len(addresses)))


def copy(target: int, addresses: Sequence[int], sizes: Sequence[int]) -> None:
    """Copies parts to the address `target` without gaps, on several threads and without the GIL."""
    starts, lengths = array.array("Q", addresses), array.array("q", sizes)
    library.hvd_copy(target, starts.buffer_info()[0], lengths.buffer_info()[0], len(addresses))


def store_checksums(begin: int, offsets: "array.array[int]", sizes: "array.array[int]") -> "array.array[int]":
    """Returns the checksums of pieces of the commit that was begun, which their copies have computed.

    Args:
      begin: of what the offsets count from, in bytes from the commit's begin.
      offsets: where the pieces begin, as 64-bit numbers in order.
      sizes: how many bytes they have.
    """
    checksums = array.array("I", bytes(4 * len(offsets)))
    addresses = (each.buffer_info()[0] for each in (offsets, sizes))
    check(library.hvd_store_checksums(begin, *addresses, len(offsets), checksums.buffer_info()[0]))
    return checksums


def store_seal(number: int) -> None:
    """Makes the commit that was begun the newest one in the store."""
    check(library.hvd_store_seal(number))


def store_compare() -> None:
    """Begins a comparison instead of a commit: what is appended is not kept. Raises ValueError if there is no commit."""
    check(library.hvd_store_compare())


def store_is_same() -> bool:
    """Ends a comparison. Returns whether length and checksum of what was appended are those of the newest commit."""
    return bool(library.hvd_store_is_same() == 1)


def store_take_kept() -> bool:
    """Copies the newest commit in the agent's memory, of another worker of this host or of another host, into the store. Returns
    whether there was one that is newer than the store's. No commit may have been begun.
    """
    code = library.hvd_store_take_kept()
    if code == NOT_FOUND:
        return False
    check(code)
    return True


def store_newest() -> Optional[Stored]:
    """Returns the newest commit in the store, of this process or of a predecessor."""
    address, size, number = ctypes.c_void_p(), ctypes.c_int64(), ctypes.c_int64()
    code = library.hvd_store_newest(*map(ctypes.byref, (address, size, number)))
    if code in (UNIMPLEMENTED, NOT_FOUND):
        return None
    check(code)
    return Stored(number.value, address.value or 0, size.value)
