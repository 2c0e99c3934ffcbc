"""Alltoall: slices of every rank's tensor to every rank."""

from typing import Any, List, Optional, Sequence, Tuple, Union

import torch

from horovod import _ffi
from horovod.common import ops, process_sets
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.torch import _tensors
from horovod.torch._groups import differentiable


def _checked_splits(tensor: torch.Tensor, splits: Any, size: int) -> List[int]:
    """`splits` as a list; empty if there are none and rows are sent evenly."""
    rows = tensor.shape[0] if tensor.dim() else 0
    if splits is None:
        if rows % size != 0:
            raise ValueError(
                "alltoall without splits needs rows that {} ranks divide, got {}".format(
                    size, rows
                )
            )
        return []
    if isinstance(splits, torch.Tensor):
        if splits.dtype != torch.int32 or splits.dim() != 1:
            raise ValueError("alltoall expects splits to be a vector of int32")
        splits = splits.tolist()
    splits = [int(split) for split in splits]
    if len(splits) != size:
        raise ValueError("alltoall needs {} splits, got {}".format(size, len(splits)))
    if min(splits) < 0 or sum(splits) > rows:
        raise ValueError(
            "alltoall splits {} do not fit the {} rows of the tensor".format(splits, rows)
        )
    return splits


@_tensors.not_compiled
def alltoall_async(
    tensor: torch.Tensor,
    splits: Union[torch.Tensor, Sequence[int], None] = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an :func:`alltoall` and returns its handle; synchronize returns (output,
    received_splits)."""
    process_set_id = process_sets.check(process_set)
    ops.check_ready()
    _tensors.check(tensor)
    counts = _checked_splits(tensor, splits, process_set.size())
    source = _tensors.on_host(tensor)
    # Rows beyond the splits are not sent.
    shape = (sum(counts), *source.shape[1:]) if counts else source.shape
    name = ops.name_or_default("alltoall", name, process_set_id)
    request = _tensors.request(name, _ffi.ALLTOALL, source, shape=shape, splits=counts)
    like = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    device = splits.device if isinstance(splits, torch.Tensor) else tensor.device

    def finish(handle: int) -> Tuple[torch.Tensor, torch.Tensor]:
        result = _ffi.result(handle, 0)
        output = _tensors.from_result(result, like, _ffi.ResultOwner(handle))
        received = torch.tensor(result.received_splits, dtype=torch.int32, device=device)
        return output, received

    return ops.submit([request], finish, source, process_set_id)


class HorovodAlltoall(torch.autograd.Function):
    """Differentiable alltoall."""

    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):
        output, received = ops.synchronize(alltoall_async(tensor, splits, name, process_set))
        ctx.received, ctx.rows, ctx.process_set = received, tensor.shape[0], process_set
        ctx.mark_non_differentiable(received)
        return output, received

    @staticmethod
    def backward(ctx, grad, _):
        sent, _ = alltoall(grad.contiguous(), ctx.received, process_set=ctx.process_set)
        if sent.shape[0] < ctx.rows:
            unsent = sent.new_zeros((ctx.rows - sent.shape[0], *sent.shape[1:]))
            sent = torch.cat([sent, unsent])
        return sent, None, None, None


@_tensors.not_compiled
def alltoall(
    tensor: torch.Tensor,
    splits: Union[torch.Tensor, Sequence[int], None] = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Union[torch.Tensor, Tuple[torch.Tensor, torch.Tensor]]:
    """Sends slices of `tensor`'s first dimension to all ranks of the process set, and concatenates
    what they send. Differentiable.

    Args:
      tensor: the same type and shape on all ranks, but for the first dimension.
      splits: how many rows go to each rank (int32), in rank order; None for the same number to
        each. Rows beyond their sum are not sent.
      name: of the operation.
      process_set: the ranks that take part.

    Returns the rows received, in rank order; if `splits` was given, also how many came from each
    rank (int32).
    """
    if differentiable(tensor):
        output, received = HorovodAlltoall.apply(tensor, splits, name, process_set)
    else:
        output, received = ops.synchronize(alltoall_async(tensor, splits, name, process_set))
    return output if splits is None else (output, received)
