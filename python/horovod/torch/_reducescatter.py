"""Reducescatter: over all ranks, a part to each rank."""

from collections.abc import Sequence
from typing import Optional

import torch

from horovod.common.collective import reduction
from horovod.common.compression import Compressor, compress_group, decompress_group
from horovod.common.ops import Average
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
) -> int:
    """Starts a :func:`reducescatter` and returns its handle."""
    call = reduction(name, process_set, op, prescale_factor, postscale_factor)
    return _reducescatter.start(tensor, call)


@not_compiled
def grouped_reducescatter_async(
    tensors: Sequence[torch.Tensor],
    name: Optional[str] = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Starts a :func:`grouped_reducescatter` and returns its handle."""
    call = reduction(name, process_set, op, prescale_factor, postscale_factor)
    return _reducescatter.start_group(tensors, call)


class HorovodReducescatter(Differentiable):
    """Differentiable reducescatter."""


@not_compiled
def reducescatter(
    tensor: torch.Tensor,
    name: Optional[str] = None,
    compression: type[Compressor] = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """Reduces `tensor` over all ranks of the process set and returns this rank's rows of the
    result.

    `tensor` has at least one dimension, and the same shape and dtype on all ranks. Its rows (the
    first dimension) are distributed evenly; the first ``rows % n`` of the n ranks get one more.
    Differentiable for hvd.Average and Sum: the gradients are gathered, and for Sum multiplied by
    the number of ranks. `compression`, `op` and the factors are those of :func:`hvd.allreduce`.

    Raises as :mod:`horovod.torch.mpi_ops` says; ValueError for a tensor without dimensions,
    HorovodRequestError for hvd.Adasum.
    """
    compressed, ctx = compression.compress(tensor)
    call = reduction(name, process_set, op, prescale_factor, postscale_factor)
    reduced = recording.run(_reducescatter, compressed, call, HorovodReducescatter)
    return compression.decompress(reduced, ctx)


class HorovodGroupedReducescatter(Differentiable):
    """Differentiable grouped reducescatter."""


@not_compiled
def grouped_reducescatter(
    tensors: Sequence[torch.Tensor],
    name: Optional[str] = None,
    compression: type[Compressor] = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[torch.Tensor]:
    """:func:`reducescatter` of several tensors, which become ready together; returns the list of
    results."""
    compressed, contexts = compress_group(_reducescatter.adapter, tensors, compression)
    call = reduction(name, process_set, op, prescale_factor, postscale_factor)
    reduced = recording.run_group(_reducescatter, compressed, call, HorovodGroupedReducescatter)
    return decompress_group(reduced, contexts, compression)
