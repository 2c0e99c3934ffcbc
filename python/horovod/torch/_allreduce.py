"""Allreduce in all its forms: over all ranks, to all ranks."""

from collections.abc import Sequence
from typing import Optional

import torch

from horovod.common.collective import reduction
from horovod.common.compression import Compressor, compress_group, decompress_group
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.common.util import get_average_backwards_compatibility_fun
from horovod.torch._differentiable import Differentiable, collectives, recording
from horovod.torch._tensors import not_compiled
from horovod.torch.compression import Compression

__all__ = [
    "allreduce",
    "allreduce_",
    "allreduce_async",
    "allreduce_async_",
    "grouped_allreduce",
    "grouped_allreduce_",
    "grouped_allreduce_async",
    "grouped_allreduce_async_",
]

_allreduce = collectives.allreduce
_reduction_of = get_average_backwards_compatibility_fun()


@not_compiled
def allreduce_async(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an :func:`allreduce` and returns its handle. `tensor` must not change until
    synchronize."""
    op = _reduction_of(op, average)
    call = reduction(name, process_set, op, prescale_factor, postscale_factor)
    return _allreduce.start(tensor, call)


@not_compiled
def allreduce_async_(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an :func:`allreduce_` and returns its handle. `tensor` must not be used until
    synchronize."""
    op = _reduction_of(op, average)
    call = reduction(name, process_set, op, prescale_factor, postscale_factor, in_place=True)
    return _allreduce.start(tensor, call)


class HorovodAllreduce(Differentiable):
    """Differentiable allreduce."""


@not_compiled
def allreduce(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: type[Compressor] = Compression.none,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Reduces `tensor` over all ranks of the process set and returns the result, of the same shape,
    type and device.

    Differentiable: the gradient is reduced in the same way. An average of integers is truncated.

    Args:
      tensor: any shape, the same on all ranks, as is the dtype; see :mod:`horovod.torch.mpi_ops`.
      average: deprecated; use `op`.
      name: of the operation.
      compression: for the time of the reduction.
      op: hvd.Average (the default), Sum, Min, Max, Product or Adasum. Adasum is a sum that does not
        overshoot when gradients agree: Maleki et al., Scaling Distributed Training with Adaptive
        Summation, 2020.
      prescale_factor: multiplies the input before the reduction.
      postscale_factor: multiplies the result.
      process_set: the ranks that take part; the average is over them.

    Raises as :mod:`horovod.torch.mpi_ops` says; ValueError for an unknown `op`, or for `op` and
    `average` together.
    """
    op = _reduction_of(op, average)
    compressed, ctx = compression.compress(tensor)
    call = reduction(name, process_set, op, prescale_factor, postscale_factor)
    reduced = recording.run(_allreduce, compressed, call, HorovodAllreduce)
    return compression.decompress(reduced, ctx)


@not_compiled
def allreduce_(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """:func:`allreduce` in place; returns `tensor`. Not differentiable."""
    op = _reduction_of(op, average)
    call = reduction(name, process_set, op, prescale_factor, postscale_factor, in_place=True)
    return _allreduce.run(tensor, call)


@not_compiled
def grouped_allreduce_async(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a :func:`grouped_allreduce` and returns its handle."""
    op = _reduction_of(op, average)
    call = reduction(name, process_set, op, prescale_factor, postscale_factor)
    return _allreduce.start_group(tensors, call)


@not_compiled
def grouped_allreduce_async_(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a :func:`grouped_allreduce_` and returns its handle."""
    op = _reduction_of(op, average)
    call = reduction(name, process_set, op, prescale_factor, postscale_factor, in_place=True)
    return _allreduce.start_group(tensors, call)


class HorovodGroupedAllreduce(Differentiable):
    """Differentiable grouped allreduce."""


@not_compiled
def grouped_allreduce(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: type[Compressor] = Compression.none,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:
    """:func:`allreduce` of several tensors, which become ready together; returns the list of
    results. Raises also ValueError for an empty list.

    The tensors, named ``<name>_<i>of<n>``, may differ in shape and type.
    """
    op = _reduction_of(op, average)
    compressed, contexts = compress_group(_allreduce.adapter, tensors, compression)
    call = reduction(name, process_set, op, prescale_factor, postscale_factor)
    reduced = recording.run_group(_allreduce, compressed, call, HorovodGroupedAllreduce)
    return decompress_group(reduced, contexts, compression)


@not_compiled
def grouped_allreduce_(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> tuple[torch.Tensor, ...]:
    """:func:`grouped_allreduce` in place; returns the tensors. Not differentiable."""
    op = _reduction_of(op, average)
    call = reduction(name, process_set, op, prescale_factor, postscale_factor, in_place=True)
    return _allreduce.run_group(tensors, call)
