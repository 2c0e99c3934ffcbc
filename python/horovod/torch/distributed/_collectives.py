"""The collectives of torch.distributed as operations of the runtime. Tensors are in host memory.

Each function starts one collective of the group `members` and returns its work. Argument shapes are those of
torch.distributed; `waits` says that the caller waits next.
"""

import functools
import operator
from collections.abc import Sequence
from typing import Any, Callable, Optional

import torch
from torch.distributed import ReduceOp, Work

from horovod import _ffi
from horovod.torch.distributed._arguments import Tensors
from horovod.torch.distributed._members import Members, Piece
from horovod.torch.distributed._tensors import (
    address_of,
    check_dense,
    contiguous,
    elements_of,
    from_result,
    moved_elements_of,
)
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


_MOST_SPLIT = 2**31 - 1  # elements; the runtime counts them in 32 bits


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


def _reduced_piece(op: int, source: torch.Tensor, target: int, count: int, reduction: Any) -> Piece:
    elements = elements_of(source.dtype)
    if elements is None:
        raise TypeError(f"The backend hvd can't reduce elements of type {source.dtype}.")
    fields = {"reduction": _reduction(reduction, source.dtype)}
    return Piece(op, elements.dtype, (count * elements.per_element,), address_of(source), target, fields)


def _moved_piece(op: int, source: torch.Tensor, target: int, count: int, **fields: Any) -> Piece:
    elements = moved_elements_of(source.dtype)
    return Piece(op, elements.dtype, (count * elements.per_element,), address_of(source), target, fields)


def _copies(pairs: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> Optional[Callable[[int], None]]:
    """Returns a function that copies the second of each pair to the first; None: there is nothing to copy."""
    unlike = [(to, source) for to, source in pairs if to is not source]
    if not unlike:
        return None

    def finish(_: int) -> None:
        for to, source in unlike:
            to.copy_(source.view(to.shape))

    return finish


def allreduce(members: Members, tensors: Tensors, op: Any, waits: bool) -> Work:
    """Reduces each tensor in place. A sparse one must be the only one."""
    if waits and len(tensors) == 1 and _is_plain(tensors[0]):
        return _allreduce_at_once(members, tensors[0], op)
    if len(tensors) == 1 and tensors[0].layout == torch.sparse_coo:
        return _allreduce_sparse(members, tensors[0], op, waits)
    check_dense(tensors)
    if name_of_op(op) in _BITWISE:
        return _allreduce_bits(members, tensors, _BITWISE[name_of_op(op)], waits)
    sources = [contiguous(tensor) for tensor in tensors]
    pieces = [_reduced_piece(_ffi.ALLREDUCE, s, s.data_ptr(), s.numel(), op) for s in sources]
    return members.start(pieces, tensors, sources, _copies(list(zip(tensors, sources))), waits, known=True)


def _is_plain(tensor: torch.Tensor) -> bool:
    return (
        tensor.layout is torch.strided
        and tensor.is_contiguous()
        and not tensor.is_neg()
        and not tensor.dtype.is_complex
    )


def _allreduce_at_once(members: Members, tensor: torch.Tensor, op: Any) -> Work:
    """As :func:`allreduce` of one tensor that needs no copy, for a caller that waits: what is called for small tensors again and
    again, so it does little.
    """
    kind = kind_of(op)
    if _NAMES.get(kind) in _BITWISE:
        return _allreduce_bits(members, [tensor], _BITWISE[_NAMES[kind]], waits=True)
    count = tensor.numel()
    return members.run_known(
        (tensor.dtype, count, kind),
        lambda: _reduced_piece(_ffi.ALLREDUCE, tensor, tensor.data_ptr(), count, op),
        tensor,
    )


def _allreduce_sparse(members: Members, tensor: torch.Tensor, op: Any, waits: bool) -> Work:
    """Sums tensors in coordinate format, each rank's with elements of its own."""
    if name_of_op(op) != "SUM":
        raise RuntimeError(f"The backend hvd reduces sparse tensors by SUM, not by {name_of_op(op)}.")
    own = tensor.coalesce()
    # One row for each element, since the ranks have different numbers of them.
    indices, values = own.indices().t().contiguous(), contiguous(own.values())
    value_shape = values.shape[1:]
    pieces = [_moved_piece(_ffi.ALLGATHER, part, 0, part.numel()) for part in (indices, values)]

    def finish(handle: int) -> None:
        places = from_result(handle, 0, indices).view(-1, own.sparse_dim()).t()
        summands = from_result(handle, 1, values).view(-1, *value_shape)
        whole = torch.sparse_coo_tensor(places.clone(), summands.clone(), tensor.shape)
        tensor.copy_(whole.coalesce())

    return members.start(pieces, [tensor], (indices, values), finish, waits)


def _allreduce_bits(
    members: Members, tensors: Tensors, operation: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], waits: bool
) -> Work:
    for tensor in tensors:
        if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
            raise RuntimeError(f"Bitwise reductions take integers and bool, not {tensor.dtype}.")
    sources = [contiguous(tensor) for tensor in tensors]
    gathered = [torch.empty((members.size, s.numel()), dtype=s.dtype) for s in sources]
    pieces = [
        _moved_piece(_ffi.ALLGATHER, s, all_of_it.data_ptr(), s.numel()) for s, all_of_it in zip(sources, gathered)
    ]

    def finish(handle: int) -> None:
        for i, (tensor, all_of_it) in enumerate(zip(tensors, gathered)):
            _take(handle, i, all_of_it)
            tensor.copy_(functools.reduce(operation, all_of_it).view(tensor.shape))

    return members.start(pieces, tensors, (sources, gathered), finish, waits)


def broadcast(members: Members, tensors: Tensors, root: int, waits: bool) -> Work:
    """Copies the root's tensors to those of all ranks."""
    check_dense(tensors)
    sources = [contiguous(tensor) for tensor in tensors]
    pieces = [_moved_piece(_ffi.BROADCAST, s, s.data_ptr(), s.numel(), root_rank=root) for s in sources]
    return members.start(pieces, tensors, sources, _copies(list(zip(tensors, sources))), waits, known=True)


def reduce(members: Members, tensors: Tensors, op: Any, root: int, waits: bool) -> Work:
    """Reduces each tensor into that of the root; those of other ranks keep their values."""
    if members.rank == root:
        return allreduce(members, tensors, op, waits)
    return allreduce(members, [tensor.clone() for tensor in tensors], op, waits)


def barrier(members: Members, waits: bool) -> Work:
    """Waits for all ranks."""
    return members.start([Piece(_ffi.BARRIER, _ffi.UINT8, (), 0, 0, {})], [], None, None, waits, known=True)


def allgather_single(members: Members, outputs: Tensors, inputs: Tensors, waits: bool) -> Work:
    """Gathers each input of all ranks into one output, whose size is that of the inputs of all ranks."""
    check_dense([*outputs, *inputs])
    for output, own in zip(outputs, inputs):
        if output.dtype != own.dtype:
            raise ValueError(f"The output's dtype {output.dtype} differs from that of the input, {own.dtype}.")
        if output.numel() != own.numel() * members.size:
            raise ValueError(
                f"The output has {output.numel()} elements; {members.size} ranks with {own.numel()} each need "
                f"{own.numel() * members.size}."
            )
    sources = [contiguous(own) for own in inputs]
    targets = [_room(output) for output in outputs]
    pieces = [
        _moved_piece(_ffi.ALLGATHER, source, target.data_ptr(), source.numel())
        for source, target in zip(sources, targets)
    ]

    return members.start(pieces, outputs, (sources, targets), _takes(outputs, targets), waits)


def _room(output: torch.Tensor) -> torch.Tensor:
    """Returns the output, or memory like it in one piece."""
    is_plain = output.is_contiguous() and not output.is_conj() and not output.is_neg()
    return output if is_plain else torch.empty(output.shape, dtype=output.dtype)


def _takes(outputs: Tensors, targets: Tensors) -> Callable[[int], None]:
    """Returns a function that takes each result into its target, and copies it to the output if that is another tensor."""

    def finish(handle: int) -> None:
        for i, (output, target) in enumerate(zip(outputs, targets)):
            _take(handle, i, target)
            if target is not output:
                output.copy_(target)

    return finish


def _take(handle: int, index: int, target: torch.Tensor) -> None:
    """Copies a result to `target`, unless the runtime has written it there. Raises RuntimeError if it has another size."""
    result = _ffi.result(handle, index)
    if result.address == target.data_ptr():
        return
    found = from_result(handle, index, target)
    if found.numel() != target.numel():
        raise RuntimeError(
            f"The ranks contribute {found.numel()} elements together; the output of this rank takes {target.numel()}."
        )
    if found.numel() > 0:
        target.view(-1).copy_(found)


def allgather(members: Members, outputs: Sequence[Tensors], inputs: Tensors, waits: bool) -> Work:
    """Gathers each input of all ranks into a list of outputs, one for each rank. Sizes may differ between ranks."""
    flat = [tensor for of_one in outputs for tensor in of_one]
    check_dense([*flat, *inputs])
    for of_one, own in zip(outputs, inputs):
        _check_lists(members, of_one, own)
    sources = [contiguous(own) for own in inputs]
    pieces = [_moved_piece(_ffi.ALLGATHER, source, 0, source.numel()) for source in sources]

    def finish(handle: int) -> None:
        for i, of_one in enumerate(outputs):
            _spread(from_result(handle, i, of_one[0]), of_one)

    return members.start(pieces, flat, sources, finish, waits)


def _check_lists(members: Members, of_one: Tensors, own: torch.Tensor) -> None:
    if len(of_one) != members.size:
        raise ValueError(f"There are {len(of_one)} output tensors for {members.size} ranks.")
    for tensor in of_one:
        if tensor.dtype != own.dtype:
            raise ValueError(f"An output's dtype {tensor.dtype} differs from that of the input, {own.dtype}.")
    if of_one[members.rank].numel() != own.numel():
        raise ValueError(
            f"The output for this rank, {members.rank}, has {of_one[members.rank].numel()} elements; its input has "
            f"{own.numel()}."
        )


def _spread(flat: torch.Tensor, outputs: Tensors) -> None:
    """Copies the elements of `flat` to these tensors, one after the other."""
    wanted = sum(tensor.numel() for tensor in outputs)
    if wanted != flat.numel():
        sizes = ", ".join(str(tensor.numel()) for tensor in outputs)
        raise RuntimeError(
            f"The ranks contribute {flat.numel()} elements together; the outputs of this rank take {sizes}."
        )
    for tensor, part in zip(outputs, flat.split([tensor.numel() for tensor in outputs])):
        tensor.copy_(part.view(tensor.shape))


def reduce_scatter_single(members: Members, outputs: Tensors, inputs: Tensors, op: Any, waits: bool) -> Work:
    """Reduces each input; each rank keeps the part of its number in its output."""
    check_dense([*outputs, *inputs])
    for output, whole in zip(outputs, inputs):
        if output.dtype != whole.dtype:
            raise ValueError(f"The output's dtype {output.dtype} differs from that of the input, {whole.dtype}.")
        if whole.numel() != output.numel() * members.size:
            raise ValueError(
                f"The input has {whole.numel()} elements; {members.size} ranks with {output.numel()} each need "
                f"{output.numel() * members.size}."
            )
    if name_of_op(op) in _BITWISE:
        return _reduce_scatter_whole(members, outputs, inputs, op, waits)
    sources = [contiguous(whole) for whole in inputs]
    targets = [_room(output) for output in outputs]
    pieces = []
    for source, target in zip(sources, targets):
        piece = _reduced_piece(_ffi.REDUCESCATTER, source, target.data_ptr(), source.numel(), op)
        # Rows of one rank each, so that complex elements, which are two, are not torn apart.
        pieces.append(piece._replace(shape=(members.size, piece.shape[0] // members.size)))

    return members.start(pieces, outputs, (sources, targets), _takes(outputs, targets), waits)


def _reduce_scatter_whole(members: Members, outputs: Tensors, inputs: Tensors, op: Any, waits: bool) -> Work:
    copies = [contiguous(whole).clone() for whole in inputs]
    allreduce(members, copies, op, waits=True).wait()
    for output, whole in zip(outputs, copies):
        output.copy_(whole.view(members.size, -1)[members.rank].view(output.shape))
    return EndedWork(outputs)


def reduce_scatter(members: Members, outputs: Tensors, inputs: Sequence[Tensors], op: Any, waits: bool) -> Work:
    """Reduces each list of inputs, one for each rank; each rank keeps its own in its output. Sizes may differ within a list."""
    flat = [tensor for of_one in inputs for tensor in of_one]
    check_dense([*outputs, *flat])
    for output, of_one in zip(outputs, inputs):
        if len(of_one) != members.size:
            raise ValueError(f"There are {len(of_one)} input tensors for {members.size} ranks.")
        if of_one[members.rank].numel() != output.numel():
            raise ValueError(
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
    pieces = [_reduced_piece(_ffi.ALLREDUCE, s, s.data_ptr(), s.numel(), op) for s in sources]

    def finish(_: int) -> None:
        for output, whole, sizes in zip(outputs, sources, pieces_of):
            output.copy_(whole.split(sizes)[members.rank].view(output.shape))

    return members.start(pieces, outputs, sources, finish, waits)


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
    if output.dtype != own.dtype:
        raise ValueError(f"The output's dtype {output.dtype} differs from that of the input, {own.dtype}.")
    _check_splits(members, own, sends, "input")
    _check_splits(members, output, receives, "output")
    rows = own.shape[0] if own.dim() else own.numel()
    row = own[0].numel() if rows and own.dim() else own.numel() // max(rows, 1)
    sent = [count * row for count in (sends or [rows // members.size] * members.size)]
    target = _room(output)
    source = contiguous(own)
    received = [count * _row_of(output) for count in (receives or _even(members, output))]
    return _exchange(members, source, sent, target, received, _copies([(output, target)]), [output], waits)


def _row_of(tensor: torch.Tensor) -> int:
    rows = tensor.shape[0] if tensor.dim() else 1
    return tensor.numel() // rows if rows else 0


def _even(members: Members, tensor: torch.Tensor) -> list[int]:
    return [(tensor.shape[0] if tensor.dim() else 1) // members.size] * members.size


def _check_splits(members: Members, tensor: torch.Tensor, splits: Sequence[int], what: str) -> None:
    rows = tensor.shape[0] if tensor.dim() else tensor.numel()
    if not splits:
        if rows % members.size != 0:
            raise ValueError(f"The {what} has {rows} rows, which can't be divided evenly among {members.size} ranks.")
        return
    if len(splits) != members.size:
        raise ValueError(f"There are {len(splits)} {what} split sizes for {members.size} ranks.")
    if sum(splits) != rows:
        raise ValueError(f"The {what} split sizes add up to {sum(splits)}, but the {what} has {rows} rows.")


def _exchange(
    members: Members,
    source: torch.Tensor,
    sent: Sequence[int],
    target: torch.Tensor,
    received: Sequence[int],
    then: Optional[Callable[[int], None]],
    result: Tensors,
    waits: bool,
) -> Work:
    """Sends so many elements of the flat `source` to each rank and receives so many of the flat `target` from each."""
    elements = moved_elements_of(source.dtype)
    if any(count * elements.per_element > _MOST_SPLIT for count in sent):
        raise ValueError(
            f"The backend hvd sends at most {_MOST_SPLIT // elements.per_element} elements of {source.dtype} from one rank to "
            f"another at once, not {max(sent)}: divide the tensor."
        )
    piece = _moved_piece(
        _ffi.ALLTOALL,
        source,
        target.data_ptr() if sum(sent) == target.numel() else 0,
        sum(sent),
        splits=[count * elements.per_element for count in sent],
    )

    def finish(handle: int) -> None:
        found = [count // elements.per_element for count in _ffi.result(handle, 0).received_splits]
        if found != list(received):
            raise RuntimeError(
                f"The other ranks have sent {found} elements to rank {members.rank}, by rank; it expects {list(received)}."
            )
        _take(handle, 0, target)
        if then is not None:
            then(handle)

    return members.start([piece], result, (source, target), finish, waits)


def alltoall(members: Members, outputs: Tensors, inputs: Tensors, waits: bool) -> Work:
    """Sends one tensor to each rank and receives one from each."""
    check_dense([*outputs, *inputs])
    if len(outputs) != members.size or len(inputs) != members.size:
        raise ValueError(f"There are {len(inputs)} inputs and {len(outputs)} outputs for {members.size} ranks.")
    source = torch.cat([tensor.reshape(-1) for tensor in inputs])
    target = torch.empty(sum(tensor.numel() for tensor in outputs), dtype=outputs[0].dtype)

    def spread(_: int) -> None:
        _spread(target, outputs)

    sent, received = [t.numel() for t in inputs], [t.numel() for t in outputs]
    return _exchange(members, source, sent, target, received, spread, outputs, waits)


def gather(members: Members, outputs: Sequence[Tensors], inputs: Tensors, root: int, waits: bool) -> Work:
    """Gathers the input of all ranks into the list of outputs of the root."""
    own = contiguous(inputs[0])
    check_dense([own])
    sent = [own.numel() if rank == root else 0 for rank in range(members.size)]
    if members.rank != root:
        return _exchange(members, own.view(-1), sent, own.new_empty(0), [0] * members.size, None, [], waits)
    of_root = outputs[0]
    _check_lists(members, of_root, own)
    received = [tensor.numel() for tensor in of_root]
    target = torch.empty(sum(received), dtype=own.dtype)
    return _exchange(members, own.view(-1), sent, target, received, lambda _: _spread(target, of_root), of_root, waits)


def scatter(members: Members, outputs: Tensors, inputs: Sequence[Tensors], root: int, waits: bool) -> Work:
    """Sends each rank its tensor of the root's list of inputs."""
    output = outputs[0]
    check_dense([output])
    received = [output.numel() if rank == root else 0 for rank in range(members.size)]
    target = _room(output)
    if members.rank == root:
        of_root = inputs[0]
        if len(of_root) != members.size:
            raise ValueError(f"There are {len(of_root)} input tensors for {members.size} ranks.")
        source = torch.cat([tensor.reshape(-1) for tensor in of_root])
        sent = [tensor.numel() for tensor in of_root]
    else:
        source, sent = output.new_empty(0), [0] * members.size
    return _exchange(members, source, sent, target, received, _copies([(output, target)]), outputs, waits)
