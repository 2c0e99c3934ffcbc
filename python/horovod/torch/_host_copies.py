"""Copies of CUDA tensors to host memory and back, through page-locked memory: with pageable memory the driver does the same, but one
piece after the other.
"""

import functools
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Callable, Optional

import torch

from horovod import _ffi

# Three buffers: while this thread works on one, the device copies the next, and has one more to go on with when this thread starts
# copies. A copy of this size takes less than a millisecond, many times what it costs to start it.
_BUFFERS = 3
_BUFFER_BYTES = 16 << 20
_ALIGNMENT = 64  # of each tensor in a commit, so that a tensor can be cut at multiples of it

_lock = threading.Lock()  # held while the buffers are in use

Stretches = tuple[list[int], list[int]]  # addresses in host memory, and how many bytes are there


@functools.cache
def _buffers() -> Optional[list[torch.Tensor]]:
    """Returns the buffers, which are kept, because page-locking takes longer than a copy; None if the driver can't lock the pages."""
    try:
        return [torch.empty(_BUFFER_BYTES, dtype=torch.uint8, device="cpu", pin_memory=True) for _ in range(_BUFFERS)]
    except RuntimeError:
        return None


def _can_be_cut(tensor: torch.Tensor) -> bool:
    """Returns whether the tensor's bytes are in order in the memory of a GPU."""
    if not tensor.is_cuda or type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return False  # a class with operations of its own may have its values elsewhere
    return tensor.is_contiguous() and not tensor.is_neg() and not tensor.dtype.is_complex


class _Batch:
    """Stretches some of which are still being copied to a buffer."""

    def __init__(self, buffer: torch.Tensor) -> None:
        self._buffer = buffer
        self._used = 0
        self._stretches: Stretches = ([], [])
        self._kept: list[torch.Tensor] = []
        self._events: dict[torch.device, Optional[torch.cuda.Event]] = {}  # those after the last copies, by device

    def add(self, address: int, size: int, owner: torch.Tensor) -> None:
        self._stretches[0].append(address)
        self._stretches[1].append(size)
        self._kept.append(owner)

    def copy(self, flat: torch.Tensor) -> int:
        """Starts to copy as many of the bytes as there is room for; returns how many."""
        count: int = min(flat.numel(), _BUFFER_BYTES - self._used)
        if count > 0:
            target = self._buffer[self._used : self._used + count]
            target.copy_(flat[:count], non_blocking=True)
            self.add(target.data_ptr(), count, flat)
            self._events[flat.device] = None
            self._used += -(-count // _ALIGNMENT) * _ALIGNMENT
        return count

    def close(self) -> "_Batch":
        """Ends the copies of this batch, which is what :meth:`arrived` waits for."""
        for device in self._events:
            with torch.cuda.device(device):
                event = torch.cuda.Event()
                event.record()
                self._events[device] = event
        return self

    def arrived(self) -> Stretches:
        for event in self._events.values():
            assert event is not None  # it is closed
            event.synchronize()
        return self._stretches


def _batches(
    tensors: Sequence[torch.Tensor], in_one_piece: Callable[[torch.Tensor], torch.Tensor], buffers: list[torch.Tensor]
) -> Iterator[_Batch]:
    """Yields batches whose copies have been started, into the buffers in turn."""
    turn = 0
    batch = _Batch(buffers[turn])
    for tensor in tensors:
        if not _can_be_cut(tensor):
            try:
                whole = in_one_piece(tensor)
            except BaseException:
                batch.close().arrived()  # no copy may be left that still writes to the buffer
                raise
            batch.add(whole.data_ptr(), whole.numel() * whole.element_size(), whole)
            continue
        flat = tensor.detach().reshape(-1).view(torch.uint8)
        while flat.numel() > 0:
            flat = flat[batch.copy(flat) :]
            if flat.numel() > 0:
                yield batch.close()
                turn = (turn + 1) % len(buffers)
                batch = _Batch(buffers[turn])
    yield batch.close()


def stretches(
    tensors: Sequence[torch.Tensor], in_one_piece: Callable[[torch.Tensor], torch.Tensor]
) -> Optional[Iterator[Stretches]]:
    """Returns an iterator over the bytes of these tensors in host memory, in order; None if none of them is on a GPU, or if there is no
    page-locked memory. What it yields is valid until the next is asked for: the copies of the next are made meanwhile.

    Args:
      tensors: the tensors, wherever they are. A tensor may be in several stretches, of which all but the last are multiples of 64 bytes.
      in_one_piece: returns a tensor itself, if it is contiguous in host memory, or else a copy there.
    """
    if not any(_can_be_cut(tensor) for tensor in tensors):
        return None
    buffers = _buffers()
    return None if buffers is None else _arriving(tensors, in_one_piece, buffers)


def _arriving(
    tensors: Sequence[torch.Tensor], in_one_piece: Callable[[torch.Tensor], torch.Tensor], buffers: list[torch.Tensor]
) -> Iterator[Stretches]:
    with _lock:
        under_way: deque[_Batch] = deque()
        try:
            for batch in _batches(tensors, in_one_piece, buffers):
                under_way.append(batch)
                if len(under_way) == len(buffers):
                    yield under_way.popleft().arrived()
            while under_way:
                yield under_way.popleft().arrived()
        finally:
            # The caller has given up: the next one must find no copy that still writes to the buffers.
            for batch in under_way:
                batch.arrived()


Pair = tuple[torch.Tensor, torch.Tensor]  # target and source


def load(pairs: Sequence[Pair]) -> list[Pair]:
    """Copies host memory to tensors on a GPU. Returns the pairs that it can't copy, of which each target must be assigned its source: all
    of them if there is no page-locked memory.
    """
    able: list[Pair] = []
    others: list[Pair] = []
    for pair in pairs:
        (able if _can_be_loaded(*pair) else others).append(pair)
    buffers = _buffers() if able else None
    if buffers is None:
        return list(pairs)
    with _lock:
        events: deque[torch.cuda.Event] = deque()  # those after the copies from a buffer that are not known to be done
        try:
            for number, window in enumerate(_windows(able)):
                if len(events) == len(buffers):
                    events.popleft().synchronize()
                _send(window, buffers[number % len(buffers)], events)
        finally:
            for event in events:
                event.synchronize()
    return others


def _can_be_loaded(target: torch.Tensor, source: torch.Tensor) -> bool:
    if not _can_be_cut(target) or target.dtype != source.dtype or target.numel() != source.numel():
        return False
    return source.is_cpu and source.is_contiguous() and not source.is_neg() and type(source) is torch.Tensor


def _windows(pairs: Sequence[Pair]) -> Iterator[list[Pair]]:
    """Yields what fits into a buffer at a time, as bytes, of one device."""
    window: list[Pair] = []
    room = _BUFFER_BYTES
    for target, source in pairs:
        to, left = (each.detach().reshape(-1).view(torch.uint8) for each in (target, source))
        if window and window[0][0].device != to.device:
            yield window
            window, room = [], _BUFFER_BYTES
        while left.numel() > 0:
            count = min(left.numel(), room)
            window.append((to[:count], left[:count]))
            to, left, room = to[count:], left[count:], room - count
            if room == 0:
                yield window
                window, room = [], _BUFFER_BYTES
    if window:
        yield window


def _send(window: Sequence[Pair], buffer: torch.Tensor, events: deque[torch.cuda.Event]) -> None:
    """Copies a window to the buffer, and starts to copy it on. Appends an event for the end of that."""
    sizes = [source.numel() for _, source in window]
    _ffi.copy(buffer.data_ptr(), [source.data_ptr() for _, source in window], sizes)
    begin = 0
    try:
        for (target, _), size in zip(window, sizes):
            target.copy_(buffer[begin : begin + size], non_blocking=True)
            begin += size
    finally:
        with torch.cuda.device(window[0][0].device):
            event = torch.cuda.Event()
            event.record()
        events.append(event)
