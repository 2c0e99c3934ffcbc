"""Exchanges: all_to_all, gather and scatter as one operation of the runtime; see :mod:`._collectives`."""

from collections.abc import Sequence
from typing import Callable, Optional

import torch
from torch.distributed import Work

from horovod import _ffi
from horovod.torch.distributed._arguments import Tensors
from horovod.torch.distributed._members import Members
from horovod.torch.distributed._pieces import (
    check_dtypes,
    check_lists,
    check_root,
    copies,
    moved_piece,
    room,
    spread,
    take,
)
from horovod.torch.distributed._tensors import check_dense, contiguous, moved_elements_of

_MOST_SPLIT = 2**31 - 1  # elements; the runtime counts them in 32 bits


def alltoall_single(
    members: Members,
    output: torch.Tensor,
    own: torch.Tensor,
    receives: Sequence[int],
    sends: Sequence[int],
    waits: bool,
) -> Work:
    """Sends parts of the first dimension of `own` to all ranks, and receives parts of `output` from them. Empty lists: even parts."""
    check_dense([output, own])
    check_dtypes(output, own)
    _check_splits(members, own, sends, "input")
    _check_splits(members, output, receives, "output")
    rows = own.shape[0] if own.dim() else own.numel()
    row = own[0].numel() if rows and own.dim() else own.numel() // max(rows, 1)
    sent = [count * row for count in (sends or [rows // members.size] * members.size)]
    target = room(output)
    source = contiguous(own)
    received = [count * _row_of(output) for count in (receives or _even(members, output))]
    return _exchange(members, source, sent, target, received, copies([(output, target)]), [output], waits)


def _row_of(tensor: torch.Tensor) -> int:
    rows = tensor.shape[0] if tensor.dim() else 1
    return tensor.numel() // rows if rows else 0


def _even(members: Members, tensor: torch.Tensor) -> list[int]:
    return [(tensor.shape[0] if tensor.dim() else 1) // members.size] * members.size


def _check_splits(members: Members, tensor: torch.Tensor, splits: Sequence[int], what: str) -> None:
    rows = tensor.shape[0] if tensor.dim() else tensor.numel()
    if not splits:
        if rows % members.size != 0:
            raise RuntimeError(f"The {what} has {rows} rows, which can't be divided evenly among {members.size} ranks.")
        return
    if len(splits) != members.size:
        raise RuntimeError(f"There are {len(splits)} {what} split sizes for {members.size} ranks.")
    if sum(splits) != rows:
        raise RuntimeError(f"The {what} split sizes add up to {sum(splits)}, but the {what} has {rows} rows.")


def _exchange(
    members: Members,
    source: torch.Tensor,
    sent: Sequence[int],
    target: torch.Tensor,
    received: Sequence[int],
    then: Optional[Callable[[int], None]],
    result: Tensors,
    waits: bool,
    meaning: str = "",
) -> Work:
    """Sends so many elements of the flat `source` to each rank and receives so many of the flat `target` from each."""
    elements = moved_elements_of(source.dtype)
    if any(count * elements.per_element > _MOST_SPLIT for count in sent):
        raise RuntimeError(
            f"The backend hvd sends at most {_MOST_SPLIT // elements.per_element} elements of {source.dtype} from one rank to "
            f"another at once, not {max(sent)}: divide the tensor."
        )
    piece = moved_piece(
        _ffi.ALLTOALL,
        source,
        target.data_ptr() if sum(sent) == target.numel() else 0,
        sum(sent),
        splits=[count * elements.per_element for count in sent],
        meaning=meaning,
    )

    def finish(handle: int) -> None:
        found = [count // elements.per_element for count in _ffi.result(handle, 0).received_splits]
        if found != list(received):
            raise RuntimeError(
                f"The other ranks have sent {found} elements to rank {members.rank}, by rank; it expects {list(received)}."
            )
        take(handle, 0, target)
        if then is not None:
            then(handle)

    return members.start([piece], result, (source, target), finish, waits)


def alltoall(members: Members, outputs: Tensors, inputs: Tensors, waits: bool) -> Work:
    """Sends one tensor to each rank and receives one from each."""
    check_dense([*outputs, *inputs])
    if len(outputs) != members.size or len(inputs) != members.size:
        raise RuntimeError(f"There are {len(inputs)} inputs and {len(outputs)} outputs for {members.size} ranks.")
    source = torch.cat([tensor.reshape(-1) for tensor in inputs])
    target = torch.empty(sum(tensor.numel() for tensor in outputs), dtype=outputs[0].dtype)

    def finish(_: int) -> None:
        spread(target, outputs)

    sent, received = [t.numel() for t in inputs], [t.numel() for t in outputs]
    return _exchange(members, source, sent, target, received, finish, outputs, waits)


def gather(members: Members, outputs: Sequence[Tensors], inputs: Tensors, root: int, waits: bool) -> Work:
    """Gathers the input of all ranks into the list of outputs of the root."""
    own = contiguous(inputs[0])
    check_dense([own])
    check_root(members, root)
    meaning = f"gather to rank {root}"
    sent = [own.numel() if rank == root else 0 for rank in range(members.size)]
    if members.rank != root:
        return _exchange(members, own.view(-1), sent, own.new_empty(0), [0] * members.size, None, [], waits, meaning)
    of_root = outputs[0]
    check_lists(members, of_root, own)
    received = [tensor.numel() for tensor in of_root]
    target = torch.empty(sum(received), dtype=own.dtype)

    def finish(_: int) -> None:
        spread(target, of_root)

    return _exchange(members, own.view(-1), sent, target, received, finish, of_root, waits, meaning)


def scatter(members: Members, outputs: Tensors, inputs: Sequence[Tensors], root: int, waits: bool) -> Work:
    """Sends each rank its tensor of the root's list of inputs."""
    output = outputs[0]
    check_dense([output])
    check_root(members, root)
    received = [output.numel() if rank == root else 0 for rank in range(members.size)]
    target = room(output)
    if members.rank == root:
        of_root = inputs[0]
        if len(of_root) != members.size:
            raise RuntimeError(f"There are {len(of_root)} input tensors for {members.size} ranks.")
        source = torch.cat([tensor.reshape(-1) for tensor in of_root])
        sent = [tensor.numel() for tensor in of_root]
    else:
        source, sent = output.new_empty(0), [0] * members.size
    return _exchange(
        members, source, sent, target, received, copies([(output, target)]), outputs, waits, f"scatter from rank {root}"
    )
