"""Allgather: concatenates the ranks' tensors on all ranks."""

from collections.abc import Sequence
from typing import Optional

import torch

from horovod.common.collective import Call
from horovod.common.ops import Handle
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
) -> Handle[torch.Tensor]:
    """Starts an :func:`allgather` and returns at once.

    Args:
      tensor, name, process_set: as for :func:`allgather`.

    Returns:
      A handle for :func:`synchronize` and :func:`poll`.
    """
    return _allgather.begin(tensor, Call(name, process_set))


@not_compiled
def grouped_allgather_async(
    tensors: Sequence[torch.Tensor],
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Handle[tuple[torch.Tensor, ...]]:
    """Starts a :func:`grouped_allgather` and returns at once.

    Args:
      tensors, name, process_set: as for :func:`grouped_allgather`.

    Returns:
      A handle for :func:`synchronize` and :func:`poll`.
    """
    return _allgather.begin_group(tensors, Call(name, process_set))


class HorovodAllgather(Differentiable):
    """The autograd function of :func:`allgather`."""


@not_compiled
def allgather(
    tensor: torch.Tensor,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Concatenates the tensors of the process set's ranks on dimension 0, in rank order.

    Differentiable: the gradient is averaged over the ranks.

    Args:
      tensor: a tensor with at least one dimension. The first dimension may differ between ranks, and may be 0; the other
        dimensions and the dtype are the same on all ranks.
      name: the operation's name; see :mod:`horovod.torch.mpi_ops`.
      process_set: the ranks that take part.

    Returns:
      The concatenated tensor, the same on all ranks.

    Raises:
      IndexError: `tensor` has no dimensions.
      HorovodInternalError: see :mod:`horovod.torch.mpi_ops` for the errors of all collectives.

    Example:
      >>> import torch
      >>> hvd.allgather(torch.tensor([[1, 2]]))
      tensor([[1, 2]])
    """
    return recording.run(_allgather, tensor, Call(name, process_set), HorovodAllgather)


class HorovodGroupedAllgather(Differentiable):
    """The autograd function of :func:`grouped_allgather`."""


@not_compiled
def grouped_allgather(
    tensors: Sequence[torch.Tensor],
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> tuple[torch.Tensor, ...]:
    """Gathers several tensors as one operation: none is gathered before all are ready on all ranks. Differentiable.

    Args:
      tensors: at least one tensor, each as for :func:`allgather`. They may differ in shape and dtype.
      name, process_set: as for :func:`allgather`.

    Returns:
      The concatenated tensors, as a tuple.
    """
    call = Call(name, process_set)
    return recording.run_group(_allgather, tensors, call, HorovodGroupedAllgather)
