"""Broadcasts of many tensors at once, from memory to memory where they lie."""

import contextlib
import mmap
import threading
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Sequence

import torch

from horovod import _ffi
from horovod.common import ops
from horovod.common.process_sets import ProcessSet
from horovod.elastic import trees as _trees
from horovod.torch.mpi_ops import rank

# Of one operation, which is what a timeout bounds.
_GROUP_BYTES = 64 << 20


class Destinations(NamedTuple):
    """Where the tensors of another rank's tree go."""

    tensors: List[torch.Tensor]
    fresh: Optional[mmap.mmap]  # the memory of those that are new

    def take_memory(self) -> None:
        """Takes the new memory from the system, in the order in which it is written to."""
        if self.fresh is not None:
            _ffi.take_new_memory(self.fresh)


def destinations(schema: bytes, kinds: Sequence[_trees.Kind], own: Any) -> Destinations:
    """Tensors of `own` where they fit, new ones in host memory otherwise."""
    found = _trees.counterparts(schema, kinds, own)
    missing = [number for number in range(len(kinds)) if number not in found]
    tensors, fresh = _trees.new_together([kinds[number] for number in missing])
    found.update(zip(missing, tensors))
    return Destinations([found[number] for number in range(len(kinds))], fresh)


@contextlib.contextmanager
def meanwhile(work: Callable[[], None]) -> Iterator[None]:
    """A context during which a thread does `work`."""
    thread = threading.Thread(target=work, name="hvd-meanwhile", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


class _Started(NamedTuple):
    handle: int
    tensors: List[torch.Tensor]
    buffers: List[torch.Tensor]  # of each, what is sent


def broadcast_tensors(
    tensors: Sequence[torch.Tensor],
    root_rank: int,
    name: str,
    process_set: ProcessSet,
    append: bool = False,
) -> None:
    """Overwrites the tensors, strided ones of any device, with those of rank `root_rank`, in place.
    Their number, shapes and types are the same on all ranks. `append`: they are also appended to
    what was begun in the store."""
    is_root = rank() == root_rank
    started: Optional[_Started] = None
    try:
        for number, group in enumerate(_groups(tensors)):
            buffers = [_buffer(tensor, is_root) for tensor in group]
            before, started = started, None
            if before is not None:
                ops.synchronize(before.handle)
            handle = ops.broadcast_stretches(
                "{}.{}".format(name, number),
                [buffer.data_ptr() for buffer in buffers],
                [_bytes_of(tensor) for tensor in group],
                root_rank,
                buffers,
                process_set.process_set_id,
                append,
            )
            started = _Started(handle, group, buffers)
            if before is not None and not is_root:
                _unpack(before)
        if started is not None:
            last, started = started, None
            ops.synchronize(last.handle)
            if not is_root:
                _unpack(last)
    finally:
        if started is not None:
            ops.discard(started.handle)


def _bytes_of(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _groups(tensors: Sequence[torch.Tensor]) -> Iterator[List[torch.Tensor]]:
    """What is sent by one operation. Follows from the sizes, so it is the same on all ranks."""
    group: List[torch.Tensor] = []
    size = 0
    for tensor in tensors:
        if tensor.numel() == 0:
            continue
        group.append(tensor)
        size += _bytes_of(tensor)
        if size >= _GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _buffer(tensor: torch.Tensor, is_root: bool) -> torch.Tensor:
    """The memory to send from or receive in: that of the tensor itself, if that will do."""
    if _trees.is_in_one_piece(tensor):
        return tensor
    if is_root:
        return _trees.copied_in_one_piece(tensor)
    return torch.empty(tensor.shape, dtype=tensor.dtype)


def _unpack(arrived: _Started) -> None:
    for tensor, buffer in zip(arrived.tensors, arrived.buffers):
        if buffer is not tensor:
            tensor.detach().copy_(buffer)
