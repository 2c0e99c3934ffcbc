"""What the collectives have in common: the pieces that the runtime takes, and where their results go."""

from collections.abc import Sequence
from typing import Any, Callable, Optional

import torch

from horovod import _ffi
from horovod.torch.distributed._arguments import Tensors
from horovod.torch.distributed._members import Members, Piece
from horovod.torch.distributed._tensors import address_of, from_result, moved_elements_of


def moved_piece(op: int, source: torch.Tensor, target: int, count: int, **fields: Any) -> Piece:
    elements = moved_elements_of(source.dtype)
    return Piece(op, elements.dtype, (count * elements.per_element,), address_of(source), target, fields)


def copies(pairs: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> Optional[Callable[[int], None]]:
    """Returns a function that copies the second of each pair to the first; None: there is nothing to copy."""
    unlike = [(to, source) for to, source in pairs if to is not source]
    if not unlike:
        return None

    def finish(_: int) -> None:
        for to, source in unlike:
            to.copy_(source.view(to.shape))

    return finish


def room(output: torch.Tensor) -> torch.Tensor:
    """Returns the output, or memory like it in one piece."""
    is_plain = output.is_contiguous() and not output.is_conj() and not output.is_neg()
    return output if is_plain else torch.empty(output.shape, dtype=output.dtype)


def takes(outputs: Tensors, targets: Tensors) -> Callable[[int], None]:
    """Returns a function that takes each result into its target, and copies it to the output if that is another tensor."""

    def finish(handle: int) -> None:
        for i, (output, target) in enumerate(zip(outputs, targets)):
            take(handle, i, target)
            if target is not output:
                output.copy_(target)

    return finish


def take(handle: int, index: int, target: torch.Tensor) -> None:
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


def check_lists(members: Members, of_one: Tensors, own: torch.Tensor) -> None:
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


def spread(flat: torch.Tensor, outputs: Tensors) -> None:
    """Copies the elements of `flat` to these tensors, one after the other."""
    wanted = sum(tensor.numel() for tensor in outputs)
    if wanted != flat.numel():
        sizes = ", ".join(str(tensor.numel()) for tensor in outputs)
        raise RuntimeError(
            f"The ranks contribute {flat.numel()} elements together; the outputs of this rank take {sizes}."
        )
    for tensor, part in zip(outputs, flat.split([tensor.numel() for tensor in outputs])):
        tensor.copy_(part.view(tensor.shape))
