"""Reducescatter: reduces the ranks' tensors, and gives a part of the result to each rank."""

from collections.abc import Sequence
from typing import Optional

import torch

from horovod.common.collective import reduction
from horovod.common.compression import Compressor, compress_group, decompress_group
from horovod.common.ops import Average, Handle
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.torch._differentiable import Differentiable, collectives, recording
from horovod.torch._tensors import not_compiled
from horovod.torch.compression import Compression

__all__ = [
    "grouped_reducescatter",
    "grouped_reducescatter_async",
    "reducescatter",
    "reducescatter_async",
]

_reducescatter = collectives.reducescatter


@not_compiled
def reducescatter_async(
    tensor: torch.Tensor,
    name: Optional[str] = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Handle[torch.Tensor]:
    """Starts a :func:`reducescatter` and returns at once. `tensor` must not change until :func:`synchronize` has returned.

    Args:
      tensor, name, op, process_set, prescale_factor, postscale_factor: as for :func:`reducescatter`.

    Returns:
      A handle for :func:`synchronize` and :func:`poll`.
    """
    call = reduction(name, process_set, op, prescale_factor, postscale_factor)
    return _reducescatter.begin(tensor, call)


@not_compiled
def grouped_reducescatter_async(
    tensors: Sequence[torch.Tensor],
    name: Optional[str] = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Handle[tuple[torch.Tensor, ...]]:
    """Starts a :func:`grouped_reducescatter` and returns at once. The tensors must not change until :func:`synchronize` has
    returned.

    Args:
      tensors, name, op, process_set, prescale_factor, postscale_factor: as for :func:`grouped_reducescatter`.

    Returns:
      A handle for :func:`synchronize` and :func:`poll`.
    """
    call = reduction(name, process_set, op, prescale_factor, postscale_factor)
    return _reducescatter.begin_group(tensors, call)


class HorovodReducescatter(Differentiable):
    """The autograd function of :func:`reducescatter`."""


@not_compiled
def reducescatter(
    tensor: torch.Tensor,
    name: Optional[str] = None,
    compression: type[Compressor[torch.Tensor]] = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """Reduces `tensor` over all ranks of the process set and returns this rank's rows of the result.

    The rows (dimension 0) are distributed evenly; of n ranks the first ``rows % n`` get one row more. Differentiable for
    hvd.Average and hvd.Sum: the gradients are gathered, and for hvd.Sum multiplied by the number of ranks.

    Args:
      tensor: a tensor with at least one dimension. Shape and dtype are the same on all ranks.
      name: the operation's name; see :mod:`horovod.torch.mpi_ops`.
      compression: how the tensor is compressed for the reduction, e.g. hvd.Compression.fp16.
      op: hvd.Average (the default), hvd.Sum, hvd.Min, hvd.Max or hvd.Product.
      process_set: the ranks that take part.
      prescale_factor: factor by which the input is multiplied before the reduction.
      postscale_factor: factor by which the result is multiplied after it.

    Returns:
      This rank's rows of the result, a new tensor.

    Raises:
      ValueError: `tensor` has no dimensions, or `op` is unknown.
      HorovodRequestError: `op` is hvd.Adasum.
      HorovodInternalError: see :mod:`horovod.torch.mpi_ops` for the errors of all collectives.

    Example:
      >>> import torch
      >>> hvd.reducescatter(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), op=hvd.Sum)
      tensor([[1., 2.],
              [3., 4.]])
    """
    compressed, ctx = compression.compress(tensor)
    call = reduction(name, process_set, op, prescale_factor, postscale_factor)
    reduced = recording.run(_reducescatter, compressed, call, HorovodReducescatter)
    return compression.decompress(reduced, ctx)


class HorovodGroupedReducescatter(Differentiable):
    """The autograd function of :func:`grouped_reducescatter`."""


@not_compiled
def grouped_reducescatter(
    tensors: Sequence[torch.Tensor],
    name: Optional[str] = None,
    compression: type[Compressor[torch.Tensor]] = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[torch.Tensor]:
    """Reduces several tensors as one operation and returns this rank's rows of each: none is reduced before all are ready on
    all ranks.

    Args:
      tensors: at least one tensor, each as for :func:`reducescatter`. They may differ in shape and dtype.
      name, compression, op, process_set, prescale_factor, postscale_factor: as for :func:`reducescatter`.

    Returns:
      A list of what :func:`reducescatter` returns for each tensor.
    """
    compressed, contexts = compress_group(_reducescatter.adapter, tensors, compression)
    call = reduction(name, process_set, op, prescale_factor, postscale_factor)
    reduced = recording.run_group(_reducescatter, compressed, call, HorovodGroupedReducescatter)
    return decompress_group(reduced, contexts, compression)
