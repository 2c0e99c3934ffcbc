"""Allreduce in all its forms: reduces the ranks' tensors, and gives the result to all ranks."""

from collections.abc import Sequence
from typing import Optional

import torch

from horovod.common.collective import reduction
from horovod.common.compression import Compressor, compress_group, decompress_group
from horovod.common.ops import Handle
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
) -> Handle[torch.Tensor]:
    """Starts an :func:`allreduce` and returns at once. `tensor` must not change until :func:`synchronize` has returned.

    Args:
      tensor, average, name, op, prescale_factor, postscale_factor, process_set: as for :func:`allreduce`.

    Returns:
      A handle for :func:`synchronize` and :func:`poll`.

    Example:
      >>> import torch
      >>> handle = hvd.allreduce_async(torch.tensor([2.0]), name="gradient")
      >>> hvd.synchronize(handle)
      tensor([2.])
    """
    op = _reduction_of(op, average)
    call = reduction(name, process_set, op, prescale_factor, postscale_factor)
    return _allreduce.begin(tensor, call)


@not_compiled
def allreduce_async_(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Handle[torch.Tensor]:
    """Starts an :func:`allreduce_` and returns at once. `tensor` must not be used until :func:`synchronize` has returned.

    Args:
      tensor: the tensor that is reduced, and overwritten with the result.
      average, name, op, prescale_factor, postscale_factor, process_set: as for :func:`allreduce`.

    Returns:
      A handle for :func:`synchronize` and :func:`poll`.
    """
    op = _reduction_of(op, average)
    call = reduction(name, process_set, op, prescale_factor, postscale_factor, in_place=True)
    return _allreduce.begin(tensor, call)


class HorovodAllreduce(Differentiable):
    """The autograd function of :func:`allreduce`."""


@not_compiled
def allreduce(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: type[Compressor[torch.Tensor]] = Compression.none,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Reduces `tensor` over all ranks of the process set.

    Differentiable: the gradient is reduced in the same way. An average of integers is truncated.

    Args:
      tensor: a tensor of any shape. Shape and dtype are the same on all ranks; see :mod:`horovod.torch.mpi_ops`.
      average: deprecated; use `op`. True stands for hvd.Average, False for hvd.Sum.
      name: the operation's name; see :mod:`horovod.torch.mpi_ops`.
      compression: how the tensor is compressed for the reduction, e.g. hvd.Compression.fp16.
      op: hvd.Average (the default), hvd.Sum, hvd.Min, hvd.Max, hvd.Product or hvd.Adasum. Adasum is a sum that scales
        gradients down where they point in the same direction (Maleki et al., Scaling Distributed Training with Adaptive
        Summation, 2020).
      prescale_factor: factor by which the input is multiplied before the reduction.
      postscale_factor: factor by which the result is multiplied after it.
      process_set: the ranks that take part; hvd.Average divides by their number.

    Returns:
      The result, a new tensor of the same shape, dtype and device.

    Raises:
      ValueError: `op` is unknown, or both `op` and `average` are given.
      HorovodInternalError: see :mod:`horovod.torch.mpi_ops` for the errors of all collectives.

    Example:
      >>> import torch
      >>> hvd.allreduce(torch.tensor([1.0, 3.0]), op=hvd.Sum)
      tensor([1., 3.])
      >>> hvd.allreduce(torch.tensor([1.0, 3.0]), op=hvd.Sum, prescale_factor=0.5)
      tensor([0.5000, 1.5000])
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
    """Reduces `tensor` over all ranks of the process set, in place. Not differentiable.

    Args:
      tensor: the tensor that is reduced, and overwritten with the result.
      average, name, op, prescale_factor, postscale_factor, process_set: as for :func:`allreduce`.

    Returns:
      `tensor`.
    """
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
) -> Handle[tuple[torch.Tensor, ...]]:
    """Starts a :func:`grouped_allreduce` and returns at once. The tensors must not change until :func:`synchronize` has
    returned.

    Args:
      tensors, average, name, op, prescale_factor, postscale_factor, process_set: as for :func:`grouped_allreduce`.

    Returns:
      A handle for :func:`synchronize` and :func:`poll`.
    """
    op = _reduction_of(op, average)
    call = reduction(name, process_set, op, prescale_factor, postscale_factor)
    return _allreduce.begin_group(tensors, call)


@not_compiled
def grouped_allreduce_async_(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Handle[tuple[torch.Tensor, ...]]:
    """Starts a :func:`grouped_allreduce_` and returns at once. The tensors must not be used until :func:`synchronize` has
    returned.

    Args:
      tensors: the tensors that are reduced, and overwritten with the results.
      average, name, op, prescale_factor, postscale_factor, process_set: as for :func:`allreduce`.

    Returns:
      A handle for :func:`synchronize` and :func:`poll`.
    """
    op = _reduction_of(op, average)
    call = reduction(name, process_set, op, prescale_factor, postscale_factor, in_place=True)
    return _allreduce.begin_group(tensors, call)


class HorovodGroupedAllreduce(Differentiable):
    """The autograd function of :func:`grouped_allreduce`."""


@not_compiled
def grouped_allreduce(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: type[Compressor[torch.Tensor]] = Compression.none,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:
    """Reduces several tensors over all ranks of the process set, as one operation: none is reduced before all are ready on
    all ranks. Differentiable.

    Args:
      tensors: at least one tensor. They may differ in shape and dtype, and are named ``<name>_<i>of<n>``.
      average, name, compression, op, prescale_factor, postscale_factor, process_set: as for :func:`allreduce`.

    Returns:
      The list of the results.

    Raises:
      ValueError: as for :func:`allreduce`; also if `tensors` is empty.

    Example:
      >>> import torch
      >>> hvd.grouped_allreduce([torch.tensor([1.0]), torch.tensor([2, 3])], op=hvd.Max)
      [tensor([1.]), tensor([2, 3])]
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
    """Reduces several tensors as :func:`grouped_allreduce` does, in place. Not differentiable.

    Args:
      tensors: the tensors that are reduced, and overwritten with the results.
      average, name, op, prescale_factor, postscale_factor, process_set: as for :func:`allreduce`.

    Returns:
      The tensors, as a tuple.
    """
    op = _reduction_of(op, average)
    call = reduction(name, process_set, op, prescale_factor, postscale_factor, in_place=True)
    return _allreduce.run_group(tensors, call)
