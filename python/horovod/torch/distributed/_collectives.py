"""The collectives of torch.distributed as operations of the runtime. Tensors are in host memory.

Each function starts one collective of the group `members` and returns its work. Argument shapes are those of
torch.distributed; `waits` says that the caller waits next. Those with an idea of their own have their modules.
"""

from collections.abc import Sequence

import torch
from torch.distributed import Work

from horovod import _ffi
from horovod.torch.distributed._arguments import Tensors
from horovod.torch.distributed._exchanges import alltoall, alltoall_single, gather, scatter
from horovod.torch.distributed._members import Members, Piece
from horovod.torch.distributed._pieces import (
    check_dtypes,
    check_lists,
    check_root,
    check_whole,
    copies,
    moved_piece,
    room,
    sizes_text,
    spread,
    takes,
)
from horovod.torch.distributed._reductions import allreduce, reduce, reduce_scatter, reduce_scatter_single
from horovod.torch.distributed._tensors import check_dense, contiguous, from_result

__all__ = [
    "allgather",
    "allgather_single",
    "allreduce",
    "alltoall",
    "alltoall_single",
    "barrier",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "scatter",
]


def broadcast(members: Members, tensors: Tensors, root: int, waits: bool) -> Work:
    """Copies the root's tensors to those of all ranks."""
    check_dense(tensors)
    check_root(members, root)
    sources = [contiguous(tensor) for tensor in tensors]
    pieces = [moved_piece(_ffi.BROADCAST, s, s.data_ptr(), s.numel(), root_rank=root) for s in sources]
    return members.start(pieces, tensors, sources, copies(list(zip(tensors, sources))), waits, known=True)


def barrier(members: Members, waits: bool) -> Work:
    """Waits for all ranks."""
    return members.start([Piece(_ffi.BARRIER, _ffi.UINT8, (), 0, 0, {})], [], None, None, waits, known=True)


def allgather_single(members: Members, outputs: Tensors, inputs: Tensors, waits: bool) -> Work:
    """Gathers each input of all ranks into one output, whose size is that of the inputs of all ranks."""
    check_dense([*outputs, *inputs])
    for output, own in zip(outputs, inputs):
        check_dtypes(output, own)
        check_whole(members, output, own, "output")
    sources = [contiguous(own) for own in inputs]
    targets = [room(output) for output in outputs]
    pieces = [
        moved_piece(_ffi.ALLGATHER, source, target.data_ptr(), source.numel(), meaning=_of_each(source))
        for source, target in zip(sources, targets)
    ]

    return members.start(pieces, outputs, (sources, targets), takes(outputs, targets), waits)


def allgather(members: Members, outputs: Sequence[Tensors], inputs: Tensors, waits: bool) -> Work:
    """Gathers each input of all ranks into a list of outputs, one for each rank. Sizes may differ between ranks."""
    flat = [tensor for of_one in outputs for tensor in of_one]
    check_dense([*flat, *inputs])
    for of_one, own in zip(outputs, inputs):
        check_lists(members, of_one, own)
    sources = [contiguous(own) for own in inputs]
    pieces = [
        moved_piece(_ffi.ALLGATHER, source, 0, source.numel(), meaning=_of_lists(of_one))
        for source, of_one in zip(sources, outputs)
    ]

    def finish(handle: int) -> None:
        for i, of_one in enumerate(outputs):
            spread(from_result(handle, i, of_one[0]), of_one)

    return members.start(pieces, flat, sources, finish, waits)


def _of_each(own: torch.Tensor) -> str:
    """Returns what ranks with equal inputs make of a gather: the runtime itself lets them differ."""
    return f"all_gather of {own.numel()} elements each"


def _of_lists(of_one: Tensors) -> str:
    even = all(tensor.numel() == of_one[0].numel() for tensor in of_one)
    return _of_each(of_one[0]) if even else f"all_gather into {sizes_text(of_one)}"
