"""Broadcast: one rank's tensor to all ranks."""

from typing import Optional

import torch

from horovod import _ffi
from horovod.common import ops, process_sets
from horovod.common.basics import rank, size
from horovod.common.ops import Average
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.torch import _tensors
from horovod.torch._allreduce import allreduce
from horovod.torch._groups import differentiable


def _is_root(root_rank: int, process_set: ProcessSet) -> bool:
    if process_set is global_process_set:
        return 0 <= root_rank < size()
    return root_rank in process_set.ranks


def _broadcast_async(tensor, output, root_rank, name, process_set) -> int:
    process_set_id = process_sets.check(process_set)
    ops.check_ready()
    if not _is_root(root_rank, process_set):
        raise ValueError(
            "broadcast received invalid root rank {} for provided process set".format(root_rank)
        )
    _tensors.check(tensor)
    if output is None:
        output = torch.empty_like(tensor, requires_grad=False)
        if rank() == root_rank:
            output.copy_(tensor.detach())
    buffer = _tensors.on_host(output)
    request = _tensors.request(
        ops.name_or_default("broadcast", name, process_set_id),
        _ffi.BROADCAST,
        buffer,
        buffer,
        root_rank=root_rank,
    )

    def finish(handle: int) -> torch.Tensor:
        _ffi.release(handle)
        if not _tensors.in_host_memory(output):
            output.detach().copy_(buffer)
        return output

    return ops.submit([request], finish, buffer, process_set_id)


@_tensors.not_compiled
def broadcast_async(
    tensor: torch.Tensor,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a :func:`broadcast` and returns its handle."""
    return _broadcast_async(tensor, None, root_rank, name, process_set)


@_tensors.not_compiled
def broadcast_async_(
    tensor: torch.Tensor,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a :func:`broadcast_` and returns its handle."""
    return _broadcast_async(tensor, tensor, root_rank, name, process_set)


class HorovodBroadcast(torch.autograd.Function):
    """Differentiable broadcast."""

    @staticmethod
    def forward(ctx, tensor, root_rank, name, process_set):
        ctx.root_rank, ctx.process_set = root_rank, process_set
        return ops.synchronize(broadcast_async(tensor, root_rank, name, process_set))

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
    return ops.synchronize(broadcast_async(tensor, root_rank, name, process_set))


@_tensors.not_compiled
def broadcast_(
    tensor: torch.Tensor,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """:func:`broadcast` in place; returns `tensor`. Not differentiable."""
    return ops.synchronize(broadcast_async_(tensor, root_rank, name, process_set))
