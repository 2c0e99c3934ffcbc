"""Reductions: all_reduce, reduce and reduce_scatter as operations of the runtime; see :mod:`._collectives`."""

import functools
import operator
from collections.abc import Sequence
from typing import Any, Callable

import torch
from torch.distributed import ReduceOp, Work

from horovod import _ffi
from horovod.torch.distributed._arguments import Tensors
from horovod.torch.distributed._members import Members, Piece
from horovod.torch.distributed._pieces import (
    check_dtypes,
    check_root,
    check_whole,
    copies,
    moved_piece,
    room,
    sizes_text,
    take,
    takes,
)
from horovod.torch.distributed._tensors import address_of, check_dense, contiguous, elements_of, from_result
from horovod.torch.distributed._works import EndedWork

_REDUCTIONS = {
    "SUM": _ffi.SUM,
    "AVG": _ffi.AVERAGE,
    "MIN": _ffi.MIN,
    "MAX": _ffi.MAX,
    "PRODUCT": _ffi.PRODUCT,
}
# Computed from all ranks' elements, since the runtime has no such reductions. Bits of a bool are min, max and "not equal".
_BITWISE: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "BAND": operator.and_,
    "BOR": operator.or_,
    "BXOR": operator.xor,
}


def kind_of(op: Any) -> int:
    """Returns the number of a reduction of torch, which is an enumerator or an object that has one."""
    return int(getattr(op, "op", op))


_NAMES = {
    kind_of(getattr(ReduceOp, name)): name
    for name in ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM")
    if hasattr(ReduceOp, name)
}


def name_of_op(op: Any) -> str:
    """Returns the name of a reduction of torch, "SUM"."""
    kind = kind_of(op)
    return _NAMES.get(kind, f"number {kind}")


def _reduction(op: Any, dtype: torch.dtype) -> int:
    name = name_of_op(op)
    if name not in _REDUCTIONS:
        known = ", ".join([*_REDUCTIONS, *_BITWISE])
        raise RuntimeError(f"The backend hvd has no reduction {name}; it has {known}.")
    if dtype.is_complex and name not in ("SUM", "AVG"):
        raise RuntimeError(f"The backend hvd reduces complex numbers by SUM and AVG, not by {name}.")
    return _REDUCTIONS[name]


def _reduced_piece(op: int, source: torch.Tensor, target: int, count: int, reduction: Any, meaning: str = "") -> Piece:
    elements = elements_of(source.dtype)
    if elements is None:
        raise RuntimeError(f"The backend hvd can't reduce elements of type {source.dtype}.")
    fields = {"reduction": _reduction(reduction, source.dtype), "meaning": meaning}
    return Piece(op, elements.dtype, (count * elements.per_element,), address_of(source), target, fields)


def allreduce(members: Members, tensors: Tensors, op: Any, waits: bool, meaning: str = "") -> Work:
    """Reduces each tensor in place. A sparse one must be the only one. `meaning`: what the caller makes of it, if that is more than
    all_reduce; it must be the same on all ranks.
    """
    if waits and len(tensors) == 1 and _is_plain(tensors[0]):
        return _allreduce_at_once(members, tensors[0], op, meaning)
    if len(tensors) == 1 and tensors[0].layout == torch.sparse_coo:
        return _allreduce_sparse(members, tensors[0], op, waits, meaning)
    check_dense(tensors)
    if name_of_op(op) in _BITWISE:
        return _allreduce_bits(members, tensors, name_of_op(op), waits, meaning)
    sources = [contiguous(tensor) for tensor in tensors]
    pieces = [_reduced_piece(_ffi.ALLREDUCE, s, s.data_ptr(), s.numel(), op, meaning) for s in sources]
    return members.start(pieces, tensors, sources, copies(list(zip(tensors, sources))), waits, known=True)


def _is_plain(tensor: torch.Tensor) -> bool:
    return (
        tensor.layout is torch.strided
        and tensor.is_contiguous()
        and not tensor.is_neg()
        and not tensor.dtype.is_complex
    )


def _allreduce_at_once(members: Members, tensor: torch.Tensor, op: Any, meaning: str) -> Work:
    """As :func:`allreduce` of one tensor that needs no copy, for a caller that waits: what is called for small tensors again and
    again, so it does little.
    """
    kind = kind_of(op)
    if _NAMES.get(kind) in _BITWISE:
        return _allreduce_bits(members, [tensor], _NAMES[kind], waits=True, meaning=meaning)
    count = tensor.numel()
    return members.run_known(
        (tensor.dtype, count, kind, meaning),
        lambda: _reduced_piece(_ffi.ALLREDUCE, tensor, tensor.data_ptr(), count, op, meaning),
        tensor,
    )


def _allreduce_sparse(members: Members, tensor: torch.Tensor, op: Any, waits: bool, meaning: str) -> Work:
    """Sums tensors in coordinate format, each rank's with elements of its own."""
    if name_of_op(op) != "SUM":
        raise RuntimeError(f"The backend hvd reduces sparse tensors by SUM, not by {name_of_op(op)}.")
    own = tensor.coalesce()
    # One row for each element, since the ranks have different numbers of them.
    indices, values = own.indices().t().contiguous(), contiguous(own.values())
    value_shape = values.shape[1:]
    shape = f"{meaning or 'all_reduce'} of a sparse tensor {list(tensor.shape)}"
    pieces = [moved_piece(_ffi.ALLGATHER, part, 0, part.numel(), meaning=shape) for part in (indices, values)]

    def finish(handle: int) -> None:
        places = from_result(handle, 0, indices).view(-1, own.sparse_dim()).t()
        summands = from_result(handle, 1, values).view(-1, *value_shape)
        whole = torch.sparse_coo_tensor(places.clone(), summands.clone(), tensor.shape)
        tensor.copy_(whole.coalesce())

    return members.start(pieces, [tensor], (indices, values), finish, waits)


def _allreduce_bits(members: Members, tensors: Tensors, name: str, waits: bool, meaning: str) -> Work:
    for tensor in tensors:
        if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
            raise RuntimeError(f"Bitwise reductions take integers and bool, not {tensor.dtype}.")
    sources = [contiguous(tensor) for tensor in tensors]
    gathered = [torch.empty((members.size, s.numel()), dtype=s.dtype) for s in sources]
    pieces = [
        moved_piece(_ffi.ALLGATHER, s, all_of_it.data_ptr(), s.numel(), meaning=_of_bits(s, name, meaning))
        for s, all_of_it in zip(sources, gathered)
    ]

    def finish(handle: int) -> None:
        for i, (tensor, all_of_it) in enumerate(zip(tensors, gathered)):
            take(handle, i, all_of_it)
            tensor.copy_(functools.reduce(_BITWISE[name], all_of_it).view(tensor.shape))

    return members.start(pieces, tensors, (sources, gathered), finish, waits)


def _of_bits(own: torch.Tensor, name: str, meaning: str) -> str:
    """Returns what the ranks must agree in: the runtime itself lets the sizes of a gather differ."""
    return f"{meaning or 'all_reduce'} by {name} of {own.numel()} elements"


def reduce(members: Members, tensors: Tensors, op: Any, root: int, waits: bool) -> Work:
    """Reduces each tensor into that of the root; those of other ranks keep their values."""
    check_root(members, root)
    own = tensors if members.rank == root else [tensor.clone() for tensor in tensors]
    return allreduce(members, own, op, waits, f"reduce to rank {root}")


def reduce_scatter_single(members: Members, outputs: Tensors, inputs: Tensors, op: Any, waits: bool) -> Work:
    """Reduces each input; each rank keeps the part of its number in its output."""
    check_dense([*outputs, *inputs])
    for output, whole in zip(outputs, inputs):
        check_dtypes(output, whole)
        check_whole(members, whole, output, "input")
    if name_of_op(op) in _BITWISE:
        return _reduce_scatter_whole(members, outputs, inputs, op, waits)
    sources = [contiguous(whole) for whole in inputs]
    targets = [room(output) for output in outputs]
    pieces = []
    for source, target in zip(sources, targets):
        piece = _reduced_piece(_ffi.REDUCESCATTER, source, target.data_ptr(), source.numel(), op)
        # Rows of one rank each, so that complex elements, which are two, are not torn apart.
        pieces.append(piece._replace(shape=(members.size, piece.shape[0] // members.size)))

    return members.start(pieces, outputs, (sources, targets), takes(outputs, targets), waits)


def _reduce_scatter_whole(members: Members, outputs: Tensors, inputs: Tensors, op: Any, waits: bool) -> Work:
    wholes = [contiguous(whole).clone() for whole in inputs]
    allreduce(members, wholes, op, waits=True, meaning="reduce_scatter").wait()
    for output, whole in zip(outputs, wholes):
        output.copy_(whole.view(members.size, -1)[members.rank].view(output.shape))
    return EndedWork(outputs)


def reduce_scatter(members: Members, outputs: Tensors, inputs: Sequence[Tensors], op: Any, waits: bool) -> Work:
    """Reduces each list of inputs, one for each rank; each rank keeps its own in its output. Sizes may differ within a list."""
    flat = [tensor for of_one in inputs for tensor in of_one]
    check_dense([*outputs, *flat])
    for output, of_one in zip(outputs, inputs):
        if len(of_one) != members.size:
            raise RuntimeError(f"There are {len(of_one)} input tensors for {members.size} ranks.")
        if of_one[members.rank].numel() != output.numel():
            raise RuntimeError(
                f"The input for this rank, {members.rank}, has {of_one[members.rank].numel()} elements; its output has "
                f"{output.numel()}."
            )
    wholes = [torch.cat([tensor.reshape(-1) for tensor in of_one]) for of_one in inputs]
    even = all(tensor.numel() == of_one[0].numel() for of_one in inputs for tensor in of_one)
    if even:
        return reduce_scatter_single(members, outputs, wholes, op, waits)
    pieces_of = [[tensor.numel() for tensor in of_one] for of_one in inputs]
    sources = [contiguous(whole) for whole in wholes]
    if name_of_op(op) in _BITWISE:
        raise RuntimeError("The backend hvd reduces parts of different sizes by SUM, AVG, MIN, MAX and PRODUCT only.")
    pieces = [
        _reduced_piece(_ffi.ALLREDUCE, s, s.data_ptr(), s.numel(), op, f"reduce_scatter of {sizes_text(of_one)}")
        for s, of_one in zip(sources, inputs)
    ]

    def finish(_: int) -> None:
        for output, whole, sizes in zip(outputs, sources, pieces_of):
            output.copy_(whole.split(sizes)[members.rank].view(output.shape))

    return members.start(pieces, outputs, sources, finish, waits)
