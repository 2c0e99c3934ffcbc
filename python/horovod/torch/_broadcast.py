"""Broadcast: one rank's tensor to all ranks."""

from typing import Any, List, Optional, Sequence

import torch

from horovod import _ffi
from horovod.common import ops, process_sets
from horovod.common.basics import rank, size
from horovod.common.ops import Average
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.torch import _devices, _tensors
from horovod.torch._allreduce import allreduce, grouped_allreduce
from horovod.torch._groups import check_group, differentiable, names_of


def _is_root(root_rank: int, process_set: ProcessSet) -> bool:
    if process_set is global_process_set:
        return 0 <= root_rank < size()
    return root_rank in process_set.ranks


def _checked_set(root_rank: int, process_set: ProcessSet) -> int:
    process_set_id = process_sets.check(process_set)
    ops.check_ready()
    if not _is_root(root_rank, process_set):
        raise ValueError(
            "broadcast received invalid root rank {} for provided process set".format(root_rank)
        )
    return process_set_id


def _outputs(tensors: List[torch.Tensor], in_place: bool, root_rank: int) -> List[torch.Tensor]:
    if in_place:
        return tensors
    outputs = [_tensors.result_like(tensor) for tensor in tensors]
    if rank() == root_rank:
        for output, tensor in zip(outputs, tensors):
            output.copy_(tensor.detach())
    return outputs


def _submit_broadcast(
    outputs: List[torch.Tensor],
    names: Sequence[str],
    root_rank: int,
    value: Any,
    process_set_id: int,
    waits: bool,
) -> int:
    """Broadcasts what is in `outputs` on the root; `value` is what synchronize will return."""
    if _devices.take(outputs):
        arguments = (outputs, outputs, names, value, process_set_id)
        return _devices.submit(_ffi.BROADCAST, *arguments, root_rank=root_rank)
    buffers = [_tensors.on_host(output) for output in outputs]
    requests = [
        _tensors.request(name, _ffi.BROADCAST, buffer, buffer, root_rank=root_rank)
        for name, buffer in zip(names, buffers)
    ]

    def finish(handle: int) -> Any:
        _ffi.release(handle)
        for output, buffer in zip(outputs, buffers):
            if not _tensors.in_host_memory(output):
                output.detach().copy_(buffer)
        return value

    return ops.submit(requests, finish, buffers, process_set_id, waits)


def _start(tensor, in_place, root_rank, name, process_set, waits) -> int:
    process_set_id = _checked_set(root_rank, process_set)
    _tensors.check(tensor)
    (output,) = _outputs([tensor], in_place, root_rank)
    with ops.naming("broadcast", name, process_set_id) as name:
        return _submit_broadcast([output], [name], root_rank, output, process_set_id, waits)


def _start_group(tensors, in_place, root_rank, name, process_set, waits) -> int:
    process_set_id = _checked_set(root_rank, process_set)
    tensors = check_group(tensors)
    outputs = _outputs(tensors, in_place, root_rank)
    with ops.naming("grouped_broadcast", name, process_set_id) as name:
        names = names_of(name, len(tensors))
        return _submit_broadcast(outputs, names, root_rank, outputs, process_set_id, waits)


def _broadcast(tensor, in_place, root_rank, name, process_set) -> torch.Tensor:
    return ops.synchronize(_start(tensor, in_place, root_rank, name, process_set, waits=True))


def _grouped_broadcast(tensors, in_place, root_rank, name, process_set) -> List[torch.Tensor]:
    arguments = (tensors, in_place, root_rank, name, process_set)
    return ops.synchronize(_start_group(*arguments, waits=True))


@_tensors.not_compiled
def broadcast_async(
    tensor: torch.Tensor,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a :func:`broadcast` and returns its handle."""
    return _start(tensor, False, root_rank, name, process_set, waits=False)


@_tensors.not_compiled
def broadcast_async_(
    tensor: torch.Tensor,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a :func:`broadcast_` and returns its handle."""
    return _start(tensor, True, root_rank, name, process_set, waits=False)


class HorovodBroadcast(torch.autograd.Function):
    """Differentiable broadcast."""

    @staticmethod
    def forward(ctx, tensor, root_rank, name, process_set):
        ctx.root_rank, ctx.process_set = root_rank, process_set
        return _broadcast(tensor, False, root_rank, name, process_set)

    @staticmethod
    def backward(ctx, grad):
        averaged = allreduce(grad.contiguous(), op=Average, process_set=ctx.process_set)
        if rank() != ctx.root_rank:
            averaged = torch.zeros_like(averaged)
        return averaged, None, None, None


@_tensors.not_compiled
def broadcast(
    tensor: torch.Tensor,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Returns rank `root_rank`'s tensor on all ranks of the process set; shape and type must be the
    same on all. `root_rank` is the root's number among all ranks, whatever the set.

    Differentiable: the gradients are averaged on the root, and 0 elsewhere.
    """
    if differentiable(tensor):
        return HorovodBroadcast.apply(tensor, root_rank, name, process_set)
    return _broadcast(tensor, False, root_rank, name, process_set)


@_tensors.not_compiled
def broadcast_(
    tensor: torch.Tensor,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """:func:`broadcast` in place; returns `tensor`. Not differentiable."""
    return _broadcast(tensor, True, root_rank, name, process_set)


@_tensors.not_compiled
def grouped_broadcast_async(
    tensors: Sequence[torch.Tensor],
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a :func:`grouped_broadcast` and returns its handle."""
    return _start_group(tensors, False, root_rank, name, process_set, waits=False)


@_tensors.not_compiled
def grouped_broadcast_async_(
    tensors: Sequence[torch.Tensor],
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a :func:`grouped_broadcast_` and returns its handle."""
    return _start_group(tensors, True, root_rank, name, process_set, waits=False)


class HorovodGroupedBroadcast(torch.autograd.Function):
    """Differentiable grouped broadcast."""

    @staticmethod
    def forward(ctx, root_rank, name, process_set, *tensors):
        ctx.root_rank, ctx.process_set = root_rank, process_set
        return tuple(_grouped_broadcast(tensors, False, root_rank, name, process_set))

    @staticmethod
    def backward(ctx, *grads):
        averaged = grouped_allreduce(
            [grad.contiguous() for grad in grads], op=Average, process_set=ctx.process_set
        )
        if rank() != ctx.root_rank:
            averaged = [torch.zeros_like(grad) for grad in averaged]
        return (None, None, None, *averaged)


@_tensors.not_compiled
def grouped_broadcast(
    tensors: Sequence[torch.Tensor],
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> List[torch.Tensor]:
    """:func:`broadcast` of several tensors, which become ready together; returns the list of
    results.

    The tensors, named ``<name>_<i>of<n>``, may differ in shape and type. Differentiable.
    """
    tensors = check_group(tensors)
    if differentiable(*tensors):
        return list(HorovodGroupedBroadcast.apply(root_rank, name, process_set, *tensors))
    return _grouped_broadcast(tensors, False, root_rank, name, process_set)


@_tensors.not_compiled
def grouped_broadcast_(
    tensors: Sequence[torch.Tensor],
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> List[torch.Tensor]:
    """:func:`grouped_broadcast` in place; returns the tensors. Not differentiable."""
    return _grouped_broadcast(tensors, True, root_rank, name, process_set)
