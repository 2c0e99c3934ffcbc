"""Broadcasts of many tensors at once: large ones from memory to memory where they lie, small ones
packed, a few of those at a time."""

import collections
import contextlib
import threading
from typing import Any, Callable, Deque, Iterator, List, NamedTuple, Sequence

import torch

from horovod import _ffi
from horovod.common import ops
from horovod.common.process_sets import ProcessSet
from horovod.torch import _trees
from horovod.torch.mpi_ops import grouped_broadcast_async_, rank, synchronize

# Of a tensor that is sent from where it is. To copy a smaller one takes less than what comes with
# each.
_LARGE_BYTES = 512 << 10
# Of small ones together in a buffer; of large ones in one operation.
_PACK_BYTES = 8 << 20
_GROUP_BYTES = 64 << 20
_IN_FLIGHT = 2


class Destinations(NamedTuple):
    """Where the tensors of another rank's tree go."""

    tensors: List[torch.Tensor]
    fresh: List[torch.Tensor]  # those of them whose memory is new

    def take_memory(self) -> None:
        """Takes the new memory from the system, in the order in which it is written to."""
        for tensor in self.fresh:
            _ffi.take_pages(tensor.data_ptr(), _bytes_of(tensor))


def destinations(schema: bytes, kinds: Sequence[_trees.Kind], own: Any) -> Destinations:
    """Tensors of `own` where they fit, new ones in host memory otherwise."""
    found = _trees.counterparts(schema, kinds, own)
    tensors, fresh = [], []
    for number, kind in enumerate(kinds):
        if number not in found:
            fresh.append(_trees.new(kind))
        tensors.append(found[number] if number in found else fresh[-1])
    return Destinations(tensors, fresh)


@contextlib.contextmanager
def meanwhile(work: Callable[[], None]) -> Iterator[None]:
    """A context during which a thread does `work`."""
    thread = threading.Thread(target=work, name="hvd-meanwhile", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def broadcast_tensors(
    tensors: Sequence[torch.Tensor], root_rank: int, name: str, process_set: ProcessSet
) -> None:
    """Overwrites the tensors, strided ones of any device, with those of rank `root_rank`, in place.
    Their number, shapes and types are the same on all ranks."""
    is_root = rank() == root_rank
    in_flight: Deque[_Started] = collections.deque()
    spare: List[torch.Tensor] = []  # memory of packs
    try:
        for number, part in enumerate(_parts(tensors)):
            if len(in_flight) == _IN_FLIGHT:
                spare += _finish(in_flight, is_root)
            buffers = [_buffer(pack, spare, is_root) for pack in part]
            part_name = "{}.{}".format(name, number)
            handle = grouped_broadcast_async_(buffers, root_rank, part_name, process_set)
            in_flight.append(_Started(handle, part, buffers))
        while in_flight:
            _finish(in_flight, is_root)
    finally:
        for started in in_flight:
            ops.discard(started.handle)


# Tensors that are sent as one: a large one, or several small ones.
_Pack = List[torch.Tensor]


class _Started(NamedTuple):
    handle: int
    packs: List[_Pack]
    buffers: List[torch.Tensor]  # of each, what is sent


def _finish(in_flight: Deque[_Started], is_root: bool) -> List[torch.Tensor]:
    """Waits for the oldest; returns the buffers that can be used again."""
    synchronize(in_flight[0].handle)
    _, packs, buffers = in_flight.popleft()
    packed = [item for item in zip(packs, buffers) if not _is_sent_in_place(item[0])]
    if not is_root:
        for pack, buffer in packed:
            _unpack(pack, buffer)
    return [buffer for _, buffer in packed]


def _bytes_of(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _parts(tensors: Sequence[torch.Tensor]) -> Iterator[List[_Pack]]:
    """What is sent by one operation. Follows from the sizes, so it is the same on all ranks."""
    large: List[_Pack] = []
    small: _Pack = []
    large_bytes = small_bytes = 0
    for tensor in tensors:
        size = _bytes_of(tensor)
        if size >= _LARGE_BYTES:
            large.append([tensor])
            large_bytes += size
            if large_bytes >= _GROUP_BYTES:
                yield large
                large, large_bytes = [], 0
        elif size > 0:
            small.append(tensor)
            small_bytes += size
            if small_bytes >= _PACK_BYTES:
                yield [small]
                small, small_bytes = [], 0
    rest = large + ([small] if small else [])
    if rest:
        yield rest


def _is_sent_in_place(pack: _Pack) -> bool:
    return len(pack) == 1 and _trees.is_in_one_piece(pack[0])


def _buffer(pack: _Pack, spare: List[torch.Tensor], is_root: bool) -> torch.Tensor:
    """The bytes to send or receive: those of the tensor itself, if it is one."""
    if _is_sent_in_place(pack):
        return pack[0].detach().reshape(-1).view(torch.uint8)
    sizes = [_bytes_of(tensor) for tensor in pack]
    offsets, _ = _trees.places(sizes)
    # As large as the tensor, if it is one: another rank may send that as it is.
    buffer = _memory(offsets[-1] + sizes[-1], spare)
    if is_root:
        start = buffer.data_ptr()
        for tensor, offset, count in zip(pack, offsets, sizes):
            if not _trees.is_in_one_piece(tensor):
                tensor = _trees.copied_in_one_piece(tensor)
            _ffi.copy(start + offset, tensor.data_ptr(), count)
    return buffer


def _memory(size: int, spare: List[torch.Tensor]) -> torch.Tensor:
    """So many bytes, which may be those of a spare buffer."""
    while spare:
        part = spare.pop()
        whole = part if part._base is None else part._base
        if whole.numel() >= size:
            return whole[:size]
    return torch.empty(1 << (size - 1).bit_length(), dtype=torch.uint8)[:size]


def _unpack(pack: _Pack, buffer: torch.Tensor) -> None:
    sizes = [_bytes_of(tensor) for tensor in pack]
    start = buffer.data_ptr()
    for tensor, offset, size in zip(pack, _trees.places(sizes)[0], sizes):
        if _trees.is_in_one_piece(tensor):
            _ffi.copy(tensor.data_ptr(), start + offset, size)
        else:
            received = buffer[offset : offset + size].view(tensor.dtype).reshape(tensor.shape)
            tensor.detach().copy_(received)
