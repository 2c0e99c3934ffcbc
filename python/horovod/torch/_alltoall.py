"""Alltoall: slices of every rank's tensor to every rank."""

from collections.abc import Sequence
from typing import Optional, Union

import torch

from horovod.common.collective import Call
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.torch._differentiable import Differentiable, collectives, recording
from horovod.torch._tensors import not_compiled

__all__ = [
    "alltoall",
    "alltoall_async",
    "grouped_alltoall",
    "grouped_alltoall_async",
]

Splits = Union[torch.Tensor, Sequence[int], None]
Exchanged = tuple[torch.Tensor, torch.Tensor]  # rows, and how many came from each rank

_alltoall = collectives.alltoall


@not_compiled
def alltoall_async(
    tensor: torch.Tensor,
    splits: Splits = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an :func:`alltoall` and returns its handle; synchronize returns (output,
    received_splits)."""
    return _alltoall.start(tensor, Call(name, process_set, False, {"splits": [splits]}))


class HorovodAlltoall(Differentiable):
    """Differentiable alltoall."""


@not_compiled
def alltoall(
    tensor: torch.Tensor,
    splits: Splits = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Union[torch.Tensor, Exchanged]:
    """Sends slices of `tensor`'s first dimension to all ranks of the process set, and concatenates
    what they send. Differentiable.

    Args:
      tensor: at least one dimension; the same dtype and shape on all ranks, except for the first
        dimension.
      splits: how many rows go to each rank (int32), in rank order; None for the same number to
        each. Rows beyond their sum are not sent.
      name: of the operation.
      process_set: the ranks that take part.

    Returns the rows received, in rank order; if `splits` was given, also how many came from each
    rank (int32, one dimension).

    Raises as :mod:`horovod.torch.mpi_ops` says; ValueError if `splits` do not fit the process set or
    the rows, or, without splits, if the ranks do not divide the rows.
    """
    call = Call(name, process_set, False, {"splits": [splits]})
    output, received = recording.run(_alltoall, tensor, call, HorovodAlltoall)
    return output if splits is None else (output, received)


@not_compiled
def grouped_alltoall_async(
    tensors: Sequence[torch.Tensor],
    splits: Optional[Sequence[Splits]] = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a :func:`grouped_alltoall` and returns its handle; synchronize returns the list of
    (output, received_splits)."""
    tensors, splits = _each(tensors, splits)
    return _alltoall.start_group(tensors, Call(name, process_set, False, {"splits": splits}))


def _each(
    tensors: Sequence[torch.Tensor], splits: Optional[Sequence[Splits]]
) -> tuple[list[torch.Tensor], list[Splits]]:
    """The tensors, and the splits of each."""
    tensors = list(tensors)
    return tensors, [None] * len(tensors) if splits is None else list(splits)


class HorovodGroupedAlltoall(Differentiable):
    """Differentiable grouped alltoall: the outputs, then the received splits."""


@not_compiled
def grouped_alltoall(
    tensors: Sequence[torch.Tensor],
    splits: Optional[Sequence[Splits]] = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Union[list[torch.Tensor], list[Exchanged]]:
    """:func:`alltoall` of several tensors, which become ready together; `splits` are a list of
    those of each tensor. Returns the list of what alltoall returns for each. Differentiable.

    The tensors, named ``<name>_<i>of<n>``, may differ in shape and type.
    """
    tensors, each = _each(tensors, splits)
    call = Call(name, process_set, False, {"splits": each})
    pairs = recording.run_group(_alltoall, tensors, call, HorovodGroupedAlltoall)
    return [output for output, _ in pairs] if splits is None else list(pairs)
