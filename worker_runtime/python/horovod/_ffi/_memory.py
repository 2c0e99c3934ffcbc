"""Memory by its address."""

import ctypes
import mmap

_HUGE_PAGE = 2 << 20
_MADV_HUGEPAGE = 14
_MADV_POPULATE_WRITE = 23

_libc = ctypes.CDLL(None)


def copy(to: int, source: int, size: int) -> None:
    """Copies `size` bytes between two addresses."""
    ctypes.memmove(to, source, size)


def prefer_huge_pages(address: int, size: int) -> None:
    """Asks for huge pages in memory that nobody has written to yet, as far as it holds whole ones:
    to clear many small ones takes longer than to fill them."""
    _advise(address, size, _HUGE_PAGE, _MADV_HUGEPAGE)


def take_pages(address: int, size: int) -> None:
    """Takes the memory from the system now, if it can; what is in it stays. Without Python's
    lock."""
    _advise(address, size, mmap.PAGESIZE, _MADV_POPULATE_WRITE)


def _advise(address: int, size: int, unit: int, advice: int) -> None:
    """Gives the advice for the whole pages in that memory."""
    start = -(-address // unit) * unit
    size = (address + size - start) // unit * unit
    if size > 0:
        _libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), advice)
