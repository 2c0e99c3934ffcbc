"""Allgather: the ranks' tensors, one after another, to all ranks."""

from collections.abc import Sequence
from typing import Optional

import torch

from horovod.common.collective import Call
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.torch._differentiable import Differentiable, collectives, recording
from horovod.torch._tensors import not_compiled

__all__ = [
    "allgather",
    "allgather_async",
    "grouped_allgather",
    "grouped_allgather_async",
]

_allgather = collectives.allgather


@not_compiled
def allgather_async(
    tensor: torch.Tensor,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an :func:`allgather` and returns its handle."""
    return _allgather.start(tensor, Call(name, process_set))


@not_compiled
def grouped_allgather_async(
    tensors: Sequence[torch.Tensor],
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a :func:`grouped_allgather` and returns its handle."""
    return _allgather.start_group(tensors, Call(name, process_set))


class HorovodAllgather(Differentiable):
    """Differentiable allgather."""


@not_compiled
def allgather(
    tensor: torch.Tensor,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Concatenates the tensors of the process set's ranks on dimension 0, in rank order.

    `tensor` has at least one dimension. The first may differ between ranks, and be 0; the other
    dimensions and the dtype are the same on all ranks. Differentiable: the gradient is averaged over
    the ranks.

    Raises as :mod:`horovod.torch.mpi_ops` says; IndexError for a tensor without dimensions.
    """
    return recording.run(_allgather, tensor, Call(name, process_set), HorovodAllgather)


class HorovodGroupedAllgather(Differentiable):
    """Differentiable grouped allgather."""


@not_compiled
def grouped_allgather(
    tensors: Sequence[torch.Tensor],
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> tuple[torch.Tensor, ...]:
    """:func:`allgather` of several tensors, which become ready together; returns the tuple of
    results."""
    call = Call(name, process_set)
    return recording.run_group(_allgather, tensors, call, HorovodGroupedAllgather)
