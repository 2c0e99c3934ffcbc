"""Allreduce in all its forms: over all ranks, to all ranks."""

from typing import List, Optional, Sequence

import torch

from horovod.common import ops, process_sets
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.common.util import get_average_backwards_compatibility_fun
from horovod.torch import _reductions, _tensors
from horovod.torch._groups import check_group, check_reduction, differentiable, names_of
from horovod.torch.compression import Compression, Compressor

_reduction_of = get_average_backwards_compatibility_fun()


def start_allreduce(tensor, output, name, op, prescale, postscale, process_set) -> int:
    """Reduces `tensor` to `output`, which may be the same; None: to a new one."""
    process_set_id = process_sets.check(process_set)
    check_reduction(op)
    _tensors.check(tensor)
    if output is None:
        output = _tensors.result_like(tensor)
    with ops.naming("allreduce", name, process_set_id) as name:
        arguments = (op, prescale, postscale, process_set_id)
        if _tensors.in_host_memory(tensor):
            return _reductions.start(tensor, output, name, *arguments)
        return _reductions.submit_staged([tensor], [output], [name], output, *arguments)


def _allreduce(tensor, output, name, op, prescale, postscale, process_set) -> torch.Tensor:
    """The same, and waits for it."""
    process_set_id = process_sets.check(process_set)
    check_reduction(op)
    _tensors.check(tensor)
    if not _tensors.in_host_memory(tensor):
        arguments = (name, op, prescale, postscale, process_set)
        return ops.synchronize(start_allreduce(tensor, output, *arguments))
    if output is None:
        output = _tensors.result_like(tensor)
    _reductions.run(tensor, output, name, op, prescale, postscale, process_set_id)
    return output


def _grouped_allreduce_async(tensors, in_place, name, op, prescale, postscale, process_set) -> int:
    process_set_id = process_sets.check(process_set)
    check_reduction(op)
    tensors = check_group(tensors)
    outputs = tensors
    if not in_place:
        outputs = [_tensors.result_like(tensor) for tensor in tensors]
    is_named = name is not None and name != ""
    with ops.naming("grouped_allreduce", name, process_set_id) as name:
        arguments = (op, prescale, postscale, process_set_id)
        if all([_tensors.in_host_memory(tensor) for tensor in tensors]):
            return _reductions.start_group(tensors, outputs, name, *arguments, keep=is_named)
        names = names_of(name, len(tensors))
        return _reductions.submit_staged(tensors, outputs, names, outputs, *arguments)


@_tensors.not_compiled
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
    return start_allreduce(tensor, None, name, op, prescale_factor, postscale_factor, process_set)


@_tensors.not_compiled
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
    return start_allreduce(tensor, tensor, name, op, prescale_factor, postscale_factor, process_set)


class HorovodAllreduce(torch.autograd.Function):
    """Differentiable allreduce."""

    @staticmethod
    def forward(ctx, tensor, name, op, prescale, postscale, process_set):
        ctx.arguments = (op, prescale, postscale, process_set)
        return _allreduce(tensor, None, name, op, prescale, postscale, process_set)

    @staticmethod
    def backward(ctx, grad):
        op, prescale, postscale, process_set = ctx.arguments
        grad = allreduce(
            grad.contiguous(),
            op=op,
            prescale_factor=prescale,
            postscale_factor=postscale,
            process_set=process_set,
        )
        return grad, None, None, None, None, None


@_tensors.not_compiled
def allreduce(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: Compressor = Compression.none,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Reduces `tensor` over all ranks of the process set and returns the result, of the same shape,
    type and device.

    Differentiable: the gradient is reduced in the same way. An average of integers is truncated.

    Args:
      tensor: contiguous; the same shape and type on all ranks. Integers, bool, half, bfloat16,
        float, double.
      average: deprecated; use `op`.
      name: of the operation.
      compression: for the time of the reduction.
      op: hvd.Average (the default), Sum, Adasum, Min, Max or Product.
      prescale_factor: multiplies the input before the reduction.
      postscale_factor: multiplies the result.
      process_set: the ranks that take part; the average is over them.
    """
    op = _reduction_of(op, average)
    compressed, ctx = compression.compress(tensor)
    arguments = (name, op, prescale_factor, postscale_factor, process_set)
    if differentiable(compressed):
        reduced = HorovodAllreduce.apply(compressed, *arguments)
    else:
        reduced = _allreduce(compressed, None, *arguments)
    return compression.decompress(reduced, ctx)


@_tensors.not_compiled
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
    return _allreduce(tensor, tensor, name, op, prescale_factor, postscale_factor, process_set)


@_tensors.not_compiled
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
    return _grouped_allreduce_async(
        tensors, False, name, op, prescale_factor, postscale_factor, process_set
    )


@_tensors.not_compiled
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
    return _grouped_allreduce_async(
        tensors, True, name, op, prescale_factor, postscale_factor, process_set
    )


class HorovodGroupedAllreduce(torch.autograd.Function):
    """Differentiable grouped allreduce."""

    @staticmethod
    def forward(ctx, name, op, prescale, postscale, process_set, *tensors):
        ctx.arguments = (op, prescale, postscale, process_set)
        handle = _grouped_allreduce_async(
            tensors, False, name, op, prescale, postscale, process_set
        )
        return tuple(ops.synchronize(handle))

    @staticmethod
    def backward(ctx, *grads):
        op, prescale, postscale, process_set = ctx.arguments
        reduced = grouped_allreduce(
            [grad.contiguous() for grad in grads],
            op=op,
            prescale_factor=prescale,
            postscale_factor=postscale,
            process_set=process_set,
        )
        return (None, None, None, None, None, *reduced)


@_tensors.not_compiled
def grouped_allreduce(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: Compressor = Compression.none,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> List[torch.Tensor]:
    """:func:`allreduce` of several tensors, which become ready together; returns the list of
    results.

    The tensors, named ``<name>_<i>of<n>``, may differ in shape and type.
    """
    op = _reduction_of(op, average)
    compressed, contexts = zip(*[compression.compress(t) for t in check_group(tensors)])
    arguments = (name, op, prescale_factor, postscale_factor, process_set)
    if differentiable(*compressed):
        reduced = HorovodGroupedAllreduce.apply(*arguments, *compressed)
    else:
        reduced = ops.synchronize(_grouped_allreduce_async(compressed, False, *arguments))
    return [compression.decompress(tensor, ctx) for tensor, ctx in zip(reduced, contexts)]


@_tensors.not_compiled
def grouped_allreduce_(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> List[torch.Tensor]:
    """:func:`grouped_allreduce` in place; returns the tensors. Not differentiable."""
    op = _reduction_of(op, average)
    arguments = (name, op, prescale_factor, postscale_factor, process_set)
    return ops.synchronize(_grouped_allreduce_async(tensors, True, *arguments))
