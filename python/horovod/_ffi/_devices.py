"""Streams and memory of CUDA devices, for arrays of libraries that lend them by their addresses."""

import ctypes
import os
import sys
from typing import Any

from horovod._ffi._library import check, library


class Event:
    """An event after the work that a stream has been given so far; `address` is that of CUDA's own object.

    `stream` is the address of a CUDA stream of the device, or CUDA's number of a default stream: 0 or 1 for the legacy one, 2 for this
    thread's.
    """

    def __init__(self, device: int, stream: int) -> None:
        made = ctypes.c_void_p()
        self._device = device
        self._pid = os.getpid()
        self.address = 0
        check(library.hvd_record_event(device, stream, ctypes.byref(made)))
        self.address = made.value or 0

    def __del__(self) -> None:
        if self.address and _is_whole(self._pid):
            library.hvd_destroy_event(self._device, self.address)


class DeviceMemory:
    """`size` (> 0) bytes at `address` in a device's memory, with any content. The end of the object waits for the device."""

    def __init__(self, device: int, size: int) -> None:
        made = ctypes.c_void_p()
        self._device = device
        self._pid = os.getpid()
        self.address = 0
        check(library.hvd_device_allocate(device, size, ctypes.byref(made)))
        self.address = made.value or 0

    def __del__(self) -> None:
        if self.address and _is_whole(self._pid):
            library.hvd_device_free(self._device, self.address)


def _is_whole(pid: int) -> bool:
    """Returns whether this is the process `pid`, not a fork of it, and the interpreter is not about to end, which frees all."""
    finalizing: Any = getattr(sys, "is_finalizing", None)
    return finalizing is not None and not finalizing() and os.getpid() == pid


TO_HOST, FROM_HOST, ON_DEVICE = 0, 1, 2


def device_copy(device: int, stream: int, way: int, to: int, source: int, size: int) -> None:
    """Copies `size` bytes after the work that the stream has been given so far, as for :class:`Event`; complete on return. A size of 0
    waits for that work.
    """
    check(library.hvd_device_copy(device, stream, way, to, source, size))


def device_of(address: int) -> int:
    """Returns the number of the device that has this memory. Raises ValueError if none has."""
    found = ctypes.c_int32()
    check(library.hvd_device_of(address, ctypes.byref(found)))
    return found.value
