"""What the collectives have in common: the pieces that the runtime takes, and where their results go."""

import zlib
from collections.abc import Sequence
from typing import Any, Callable, Optional

import torch

from horovod import _ffi
from horovod.torch.distributed._arguments import Tensors
from horovod.torch.distributed._members import Members, Piece
from horovod.torch.distributed._tensors import address_of, from_result, moved_elements_of

_MOST_SHOWN = 16  # sizes in a text that all ranks send


def moved_piece(op: int, source: torch.Tensor, target: int, count: int, **fields: Any) -> Piece:
    """Returns a piece of `count` elements that are only moved."""
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
    """Copies a result to `target`, unless the runtime has written it there."""
    result = _ffi.result(handle, index)
    if result.address == target.data_ptr():
        return
    found = from_result(handle, index, target)
    if found.numel() > 0:
        target.view(-1).copy_(found)


def check_root(members: Members, root: int) -> None:
    """Raises RuntimeError: the group has no such rank."""
    if not 0 <= root < members.size:
        raise RuntimeError(f"There is no root rank {root} in a group of {members.size}.")


def check_dtypes(output: torch.Tensor, own: torch.Tensor) -> None:
    """Raises RuntimeError: the types of an output and its input differ."""
    if output.dtype != own.dtype:
        raise RuntimeError(f"The output's dtype {output.dtype} differs from that of the input, {own.dtype}.")


def check_whole(members: Members, whole: torch.Tensor, part: torch.Tensor, name: str) -> None:
    """Raises RuntimeError: `whole`, which messages call `name`, has not as many elements as a `part` of each rank."""
    if whole.numel() != part.numel() * members.size:
        raise RuntimeError(
            f"The {name} has {whole.numel()} elements; {members.size} ranks with {part.numel()} each need "
            f"{part.numel() * members.size}."
        )


def sizes_text(tensors: Tensors) -> str:
    """Returns the numbers of elements for comparison among ranks, "[3, 4]"; those of a long list in short."""
    sizes = [tensor.numel() for tensor in tensors]
    if len(sizes) <= _MOST_SHOWN:
        return str(sizes)
    whole = zlib.crc32(str(sizes).encode())
    return f"{str(sizes[:_MOST_SHOWN])[:-1]}, ...] ({len(sizes)} sizes, checksum {whole})"


def check_lists(members: Members, of_one: Tensors, own: torch.Tensor) -> None:
    """Raises RuntimeError: the outputs are not one for each rank, of the type of this rank's input and one of its size."""
    if len(of_one) != members.size:
        raise RuntimeError(f"There are {len(of_one)} output tensors for {members.size} ranks.")
    for tensor in of_one:
        check_dtypes(tensor, own)
    if of_one[members.rank].numel() != own.numel():
        raise RuntimeError(
            f"The output for this rank, {members.rank}, has {of_one[members.rank].numel()} elements; its input has "
            f"{own.numel()}."
        )


def spread(flat: torch.Tensor, outputs: Tensors) -> None:
    """Copies the elements of `flat` to these tensors, one after the other."""
    for tensor, part in zip(outputs, flat.split([tensor.numel() for tensor in outputs])):
        tensor.copy_(part.view(tensor.shape))
