"""Allgather: the ranks' tensors, one after another, to all ranks."""

from typing import Any, List, Optional, Sequence

import torch

from horovod import _ffi
from horovod.common import ops, process_sets
from horovod.common.ops import Average
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.torch import _devices, _tensors
from horovod.torch._allreduce import allreduce
from horovod.torch._groups import check_group, differentiable, names_of, results


def _submit_allgather(
    tensors: List[torch.Tensor],
    names: Sequence[str],
    single: bool,
    process_set: ProcessSet,
    waits: bool,
) -> int:
    process_set_id = process_set.process_set_id
    if _devices.take(tensors):
        ops.check_ready()
        # Most often all ranks have as many rows.
        outputs = [
            _devices.room(tensor, tensor.shape[0] * process_set.size()) if tensor.dim() else None
            for tensor in tensors
        ]
        finish = results(tensors, single, outputs)
        return _devices.start(_ffi.ALLGATHER, tensors, outputs, names, finish, process_set_id)
    sources = [_tensors.on_host(tensor) for tensor in tensors]
    requests = [
        _tensors.request(name, _ffi.ALLGATHER, source) for name, source in zip(names, sources)
    ]
    return ops.submit(requests, results(tensors, single), sources, process_set_id, waits)


def _start(tensor: torch.Tensor, name: Any, process_set: ProcessSet, waits: bool) -> int:
    process_set_id = process_sets.check(process_set)
    _tensors.check(tensor)
    with ops.naming("allgather", name, process_set_id) as name:
        return _submit_allgather([tensor], [name], True, process_set, waits)


def _start_group(
    tensors: Sequence[torch.Tensor], name: Any, process_set: ProcessSet, waits: bool
) -> int:
    process_set_id = process_sets.check(process_set)
    tensors = check_group(tensors)
    with ops.naming("grouped_allgather", name, process_set_id) as name:
        names = names_of(name, len(tensors))
        return _submit_allgather(tensors, names, False, process_set, waits)


@_tensors.not_compiled
def allgather_async(
    tensor: torch.Tensor,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an :func:`allgather` and returns its handle."""
    return _start(tensor, name, process_set, waits=False)


@_tensors.not_compiled
def grouped_allgather_async(
    tensors: Sequence[torch.Tensor],
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a :func:`grouped_allgather` and returns its handle."""
    return _start_group(tensors, name, process_set, waits=False)


def _own_rows(grad: torch.Tensor, rows: int, process_set: ProcessSet) -> torch.Tensor:
    """The gradient of this rank's `rows` in a gathered tensor: the average of the ranks' gradients
    of them."""
    counts = allgather(torch.tensor([rows]), process_set=process_set).tolist()
    averaged = allreduce(grad.contiguous(), op=Average, process_set=process_set)
    return averaged.narrow(0, sum(counts[: process_set.rank()]), rows)


class HorovodAllgather(torch.autograd.Function):
    """Differentiable allgather."""

    @staticmethod
    def forward(ctx, tensor, name, process_set):
        ctx.rows, ctx.process_set = tensor.shape[0], process_set
        return ops.synchronize(_start(tensor, name, process_set, waits=True))

    @staticmethod
    def backward(ctx, grad):
        return _own_rows(grad, ctx.rows, ctx.process_set), None, None


@_tensors.not_compiled
def allgather(
    tensor: torch.Tensor,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Concatenates the tensors of the process set's ranks on dimension 0, in rank order.

    The first dimension may differ between ranks, and be 0; the others and the type may not.
    Differentiable: the gradient is averaged over the ranks. Raises IndexError for a tensor without
      dimensions.
    """
    _tensors.check(tensor)
    if tensor.dim() == 0:
        raise IndexError("allgather needs a tensor of at least one dimension")
    if differentiable(tensor):
        return HorovodAllgather.apply(tensor, name, process_set)
    return ops.synchronize(_start(tensor, name, process_set, waits=True))


class HorovodGroupedAllgather(torch.autograd.Function):
    """Differentiable grouped allgather."""

    @staticmethod
    def forward(ctx, name, process_set, *tensors):
        ctx.rows, ctx.process_set = [tensor.shape[0] for tensor in tensors], process_set
        return tuple(ops.synchronize(_start_group(tensors, name, process_set, waits=True)))

    @staticmethod
    def backward(ctx, *grads):
        own = [_own_rows(grad, rows, ctx.process_set) for grad, rows in zip(grads, ctx.rows)]
        return (None, None, *own)


@_tensors.not_compiled
def grouped_allgather(
    tensors: Sequence[torch.Tensor],
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> List[torch.Tensor]:
    """:func:`allgather` of several tensors, which become ready together; returns the list of
    results."""
    tensors = check_group(tensors)
    if any(tensor.dim() == 0 for tensor in tensors):
        raise IndexError("grouped_allgather needs tensors of at least one dimension")
    if differentiable(*tensors):
        return list(HorovodGroupedAllgather.apply(name, process_set, *tensors))
    return ops.synchronize(_start_group(tensors, name, process_set, waits=True))
