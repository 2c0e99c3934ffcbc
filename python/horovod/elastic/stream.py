"""Broadcasts of many tensors at once, directly from memory to memory."""

import contextlib
import mmap
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Callable, NamedTuple, Optional

from horovod import _ffi
from horovod.common import ops, process_sets
from horovod.common.basics import rank
from horovod.common.objects import broadcast_object
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.common.tensors import Kind, Tensor, kind_of, new, size_of
from horovod.elastic.trees import Trees, put_tensors

# The size of one operation, to which timeouts apply.
_GROUP_BYTES = 64 << 20

_Sized = tuple[Tensor, Kind, int]  # a tensor, its kind, and how many bytes it has


class Destinations(NamedTuple):
    """The tensors that receive another rank's tree."""

    tensors: list[Tensor]
    fresh: Optional[mmap.mmap]  # the memory of those that are new

    def take_memory(self) -> None:
        """Allocates the pages of the new memory, in the order in which it is written."""
        if self.fresh is not None:
            _ffi.take_new_memory(self.fresh)


def destinations(trees: Trees, schema: bytes, kinds: Sequence[Kind], own: object) -> Destinations:
    """Returns tensors of `own` where they fit, and new ones in host memory otherwise."""
    found = trees.counterparts(schema, kinds, own)
    missing = [number for number in range(len(kinds)) if number not in found]
    tensors, fresh = trees.new_together([kinds[number] for number in missing])
    found.update(zip(missing, tensors))
    return Destinations([found[number] for number in range(len(kinds))], fresh)


@contextlib.contextmanager
def meanwhile(work: Callable[[], None]) -> Iterator[None]:
    """A context during which a thread runs `work`."""
    thread = threading.Thread(target=work, name="hvd-meanwhile", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def broadcast_tree(
    trees: Trees,
    own: object,
    root_rank: int,
    name: str,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Returns rank `root_rank`'s tree on all ranks: nested dicts, lists and tuples of tensors and other values, which are pickled.

    Each rank passes its own tree. If the root's tree has a tensor of the same shape and dtype at the same position, the tensor
    of `own` is overwritten and becomes part of the result; other tensors are new, in host memory. The root gets `own` itself.
    """
    if rank() == root_rank:
        taken = trees.take_tensors(own)
        broadcast_object((taken.schema, taken.kinds), root_rank, name + ".schema", process_set)
        broadcast_tensors(trees, taken.tensors, root_rank, name, process_set)
        return own
    schema, kinds = broadcast_object(None, root_rank, name + ".schema", process_set)
    places = destinations(trees, schema, kinds, own)
    with meanwhile(places.take_memory):
        broadcast_tensors(trees, places.tensors, root_rank, name, process_set)
    return put_tensors(schema, places.tensors)


class _Started(NamedTuple):
    handle: int
    group: list[_Sized]
    buffers: list[Tensor]  # the memory of each tensor that is sent or received


def broadcast_tensors(
    trees: Trees,
    tensors: Sequence[Tensor],
    root_rank: int,
    name: str,
    process_set: ProcessSet,
    append: bool = False,
) -> None:
    """Overwrites the tensors, wherever they are, with those of rank `root_rank`, in place. Their number, shapes and dtypes are the
    same on all ranks. `append`: they are also appended to the commit that was begun in the store.
    """
    is_root = rank() == root_rank
    process_set_id = process_sets.check(process_set)
    started: Optional[_Started] = None
    try:
        for number, group in enumerate(_groups(trees, tensors)):
            buffers = [_buffer(trees, tensor, kind, is_root) for tensor, kind, _ in group]
            before, started = started, None
            if before is not None:
                ops.synchronize(before.handle)
            handle = ops.broadcast_stretches(
                f"{name}.{number}",
                trees.addresses(buffers),
                [size for _, _, size in group],
                root_rank,
                buffers,
                process_set_id,
                append,
            )
            started = _Started(handle, group, buffers)
            if before is not None and not is_root:
                _unpack(trees, before)
        if started is not None:
            last, started = started, None
            ops.synchronize(last.handle)
            if not is_root:
                _unpack(trees, last)
    finally:
        if started is not None:
            ops.discard(started.handle)


def _groups(trees: Trees, tensors: Sequence[Tensor]) -> Iterator[list[_Sized]]:
    """Yields the tensors of each operation. The groups depend only on the sizes, so they are the same on all ranks."""
    group: list[_Sized] = []
    total = 0
    for tensor in tensors:
        kind = kind_of(trees.adapter, tensor)
        size = size_of(kind)
        if size == 0:
            continue
        group.append((tensor, kind, size))
        total += size
        if total >= _GROUP_BYTES:
            yield group
            group, total = [], 0
    if group:
        yield group


def _buffer(trees: Trees, tensor: Tensor, kind: Kind, is_root: bool) -> Tensor:
    """Returns the memory to send from or to receive in: the tensor's own, if possible."""
    if is_root or trees.adapter.address(tensor) is not None:
        return trees.in_one_piece(tensor)
    buffer: Tensor = new(trees.adapter, kind)
    return buffer


def _unpack(trees: Trees, arrived: _Started) -> None:
    for (tensor, _, _), buffer in zip(arrived.group, arrived.buffers):
        if buffer is not tensor:
            trees.adapter.assign(tensor, buffer)
