"""Alltoall: sends a slice of every rank's tensor to every rank."""

from collections.abc import Sequence
from typing import Optional, Union

import torch

from horovod.common.collective import Call
from horovod.common.ops import Handle
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
) -> Handle[Exchanged]:
    """Starts an :func:`alltoall` and returns at once.

    Args:
      tensor, splits, name, process_set: as for :func:`alltoall`.

    Returns:
      A handle for :func:`synchronize`, which returns the pair (output, received_splits) also if `splits` is None.
    """
    return _alltoall.begin(tensor, Call(name, process_set, False, {"splits": [splits]}))


class HorovodAlltoall(Differentiable):
    """The autograd function of :func:`alltoall`."""


@not_compiled
def alltoall(
    tensor: torch.Tensor,
    splits: Splits = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Union[torch.Tensor, Exchanged]:
    """Sends slices of `tensor` along dimension 0 to all ranks of the process set, and concatenates the slices received.

    Differentiable: the gradient's rows return to the ranks that the input's rows came from.

    Args:
      tensor: a tensor with at least one dimension. All dimensions but the first, and the dtype, are the same on all
        ranks.
      splits: how many rows go to each rank, in rank order: an int32 tensor or a sequence. None: the same number to each.
        Rows beyond the sum of `splits` are not sent.
      name: the operation's name; see :mod:`horovod.torch.mpi_ops`.
      process_set: the ranks that take part.

    Returns:
      The rows received, in rank order. If `splits` is given, a pair of these and how many rows came from each rank (an
      int32 tensor of one dimension).

    Raises:
      ValueError: `splits` do not fit the process set or the number of rows; or without `splits`, the ranks can't share the rows
        equally.
      HorovodInternalError: see :mod:`horovod.torch.mpi_ops` for the errors of all collectives.

    Example:
      >>> import torch
      >>> hvd.alltoall(torch.tensor([5, 6, 7]))
      tensor([5, 6, 7])
      >>> rows, received_splits = hvd.alltoall(torch.tensor([5, 6, 7]), splits=[2])
      >>> rows, received_splits.tolist()
      (tensor([5, 6]), [2])
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
) -> Handle[tuple[Exchanged, ...]]:
    """Starts a :func:`grouped_alltoall` and returns at once.

    Args:
      tensors, splits, name, process_set: as for :func:`grouped_alltoall`.

    Returns:
      A handle for :func:`synchronize`, which returns a pair (output, received_splits) for each tensor.
    """
    tensors, splits = _each(tensors, splits)
    return _alltoall.begin_group(tensors, Call(name, process_set, False, {"splits": splits}))


def _each(
    tensors: Sequence[torch.Tensor], splits: Optional[Sequence[Splits]]
) -> tuple[list[torch.Tensor], list[Splits]]:
    """Returns the tensors as a list, and the list of the splits of each."""
    tensors = list(tensors)
    return tensors, [None] * len(tensors) if splits is None else list(splits)


class HorovodGroupedAlltoall(Differentiable):
    """The autograd function of :func:`grouped_alltoall`. Its results are all outputs, then all received splits."""


@not_compiled
def grouped_alltoall(
    tensors: Sequence[torch.Tensor],
    splits: Optional[Sequence[Splits]] = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Union[list[torch.Tensor], list[Exchanged]]:
    """Exchanges slices of several tensors as one operation: none is sent before all are ready on all ranks. Differentiable.

    Args:
      tensors: at least one tensor, each as for :func:`alltoall`. They may differ in shape and dtype, and are named
        ``<name>_<i>of<n>``.
      splits: the splits of each tensor, as a list; None to split all evenly.
      name, process_set: as for :func:`alltoall`.

    Returns:
      A list of what :func:`alltoall` returns for each tensor.
    """
    tensors, each = _each(tensors, splits)
    call = Call(name, process_set, False, {"splits": each})
    pairs = recording.run_group(_alltoall, tensors, call, HorovodGroupedAlltoall)
    return [output for output, _ in pairs] if splits is None else list(pairs)
