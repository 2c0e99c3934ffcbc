"""Reducescatter: over all ranks, a part to each rank."""

from typing import Any, List, Optional, Sequence

import torch

from horovod import _ffi
from horovod.common import ops, process_sets
from horovod.common.exceptions import HorovodRequestError
from horovod.common.ops import Adasum, Average, Sum
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.torch import _devices, _tensors
from horovod.torch._allgather import allgather
from horovod.torch._groups import check_group, check_reduction, differentiable, names_of, results
from horovod.torch.compression import Compression, Compressor


def _start(tensors, name, op, process_set, prescale, postscale, single, waits) -> int:
    process_set_id = process_sets.check(process_set)
    check_reduction(op)
    if op == Adasum:
        raise HorovodRequestError("Reducescatter does not support Adasum.")
    for tensor in tensors:
        if tensor.dim() == 0:
            raise ValueError("Reducescatter does not support scalar inputs")
    fields = dict(reduction=op, prescale=prescale, postscale=postscale)
    kind = "reducescatter" if single else "grouped_reducescatter"
    with ops.naming(kind, name, process_set_id) as name:
        names = names_of(name, len(tensors), single)
        if _devices.take_reduction(tensors, op, prescale, postscale):
            ops.check_ready()
            outputs = [_devices.room(tensor, _own_rows(tensor, process_set)) for tensor in tensors]
            arguments = (names, results(tensors, single, outputs), process_set_id)
            return _devices.start(_ffi.REDUCESCATTER, tensors, outputs, *arguments, **fields)
        sources = [_tensors.on_host(tensor) for tensor in tensors]
        requests = [
            _tensors.request(each, _ffi.REDUCESCATTER, source, **fields)
            for each, source in zip(names, sources)
        ]
        return ops.submit(requests, results(tensors, single), sources, process_set_id, waits)


def _own_rows(tensor: torch.Tensor, process_set: ProcessSet) -> int:
    """How many rows of the result this rank gets."""
    rows, size = tensor.shape[0], process_set.size()
    return rows // size + (process_set.rank() < rows % size)


def _start_one(tensor: torch.Tensor, *arguments: Any, waits: bool) -> int:
    _tensors.check(tensor)
    return _start([tensor], *arguments, single=True, waits=waits)


def _start_group(tensors: Sequence[torch.Tensor], *arguments: Any, waits: bool) -> int:
    return _start(check_group(tensors), *arguments, single=False, waits=waits)


@_tensors.not_compiled
def reducescatter_async(
    tensor: torch.Tensor,
    name: Optional[str] = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Starts a :func:`reducescatter` and returns its handle."""
    arguments = (name, op, process_set, prescale_factor, postscale_factor)
    return _start_one(tensor, *arguments, waits=False)


@_tensors.not_compiled
def grouped_reducescatter_async(
    tensors: Sequence[torch.Tensor],
    name: Optional[str] = None,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Starts a :func:`grouped_reducescatter` and returns its handle."""
    arguments = (name, op, process_set, prescale_factor, postscale_factor)
    return _start_group(tensors, *arguments, waits=False)


def _scatter_backward(grad: torch.Tensor, ctx: Any) -> torch.Tensor:
    gathered = allgather(grad.contiguous(), process_set=ctx.process_set)
    factor = ctx.factor * (ctx.process_set.size() if ctx.op == Sum else 1)
    return gathered if factor == 1 else gathered * factor


class HorovodReducescatter(torch.autograd.Function):
    """Differentiable reducescatter."""

    @staticmethod
    def forward(ctx, tensor, name, op, process_set, prescale, postscale):
        ctx.op, ctx.process_set, ctx.factor = op, process_set, prescale * postscale
        arguments = (name, op, process_set, prescale, postscale)
        return ops.synchronize(_start_one(tensor, *arguments, waits=True))

    @staticmethod
    def backward(ctx, grad):
        return _scatter_backward(grad, ctx), None, None, None, None, None


@_tensors.not_compiled
def reducescatter(
    tensor: torch.Tensor,
    name: Optional[str] = None,
    compression: Compressor = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """Reduces `tensor` over all ranks of the process set and returns this rank's rows of the
    result.

    Rows (the first dimension) are dealt out evenly; the first ``rows % n`` of the n
    ranks get one more.
    Differentiable for hvd.Average and Sum: the gradients are gathered, and for Sum multiplied by
    the number of ranks.
    """
    compressed, ctx = compression.compress(tensor)
    arguments = (name, op, process_set, prescale_factor, postscale_factor)
    if differentiable(compressed):
        reduced = HorovodReducescatter.apply(compressed, *arguments)
    else:
        reduced = ops.synchronize(_start_one(compressed, *arguments, waits=True))
    return compression.decompress(reduced, ctx)


class HorovodGroupedReducescatter(torch.autograd.Function):
    """Differentiable grouped reducescatter."""

    @staticmethod
    def forward(ctx, name, op, process_set, prescale, postscale, *tensors):
        ctx.op, ctx.process_set, ctx.factor = op, process_set, prescale * postscale
        arguments = (name, op, process_set, prescale, postscale)
        return tuple(ops.synchronize(_start_group(tensors, *arguments, waits=True)))

    @staticmethod
    def backward(ctx, *grads):
        return (None, None, None, None, None, *[_scatter_backward(grad, ctx) for grad in grads])


@_tensors.not_compiled
def grouped_reducescatter(
    tensors: Sequence[torch.Tensor],
    name: Optional[str] = None,
    compression: Compressor = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> List[torch.Tensor]:
    """:func:`reducescatter` of several tensors, which become ready together; returns the list of
    results."""
    compressed, contexts = zip(*[compression.compress(t) for t in check_group(tensors)])
    arguments = (name, op, process_set, prescale_factor, postscale_factor)
    if differentiable(*compressed):
        reduced = HorovodGroupedReducescatter.apply(*arguments, *compressed)
    else:
        reduced = ops.synchronize(_start_group(compressed, *arguments, waits=True))
    return [compression.decompress(tensor, ctx) for tensor, ctx in zip(reduced, contexts)]
