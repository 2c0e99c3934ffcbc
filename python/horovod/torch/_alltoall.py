"""Alltoall: slices of every rank's tensor to every rank."""

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import torch

from horovod import _ffi
from horovod.common import ops, process_sets
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.torch import _devices, _tensors
from horovod.torch._groups import check_group, differentiable, names_of, results

Splits = Union[torch.Tensor, Sequence[int], None]
Exchanged = Tuple[torch.Tensor, torch.Tensor]  # rows, and how many came from each rank

_MOST_ROWS = 2**31 - 1  # to one rank: splits are told in 32 bits


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
    if max(splits) > _MOST_ROWS:
        raise ValueError(
            "alltoall splits {}: a rank can be sent {} rows".format(splits, _MOST_ROWS)
        )
    return splits


def _fields(tensor: torch.Tensor, counts: List[int]) -> Dict[str, Any]:
    """Those of a request."""
    # Rows beyond the splits are not sent.
    shape = (sum(counts), *tensor.shape[1:]) if counts else tensor.shape
    return dict(shape=shape, splits=counts)


def _room(tensor: torch.Tensor, counts: List[int]) -> Optional[torch.Tensor]:
    """Memory for a result of as many rows as are sent, if that is likely."""
    if tensor.dim() == 0 or any(count != counts[0] for count in counts):
        return None
    return _devices.room(tensor, sum(counts) if counts else tensor.shape[0])


def _exchanged(
    tensors: List[torch.Tensor],
    splits: Sequence[Splits],
    single: bool,
    outputs: Optional[Sequence[Optional[torch.Tensor]]],
) -> Callable[[int], Union[Exchanged, List[Exchanged]]]:
    """The finisher of an operation on `tensors`; `outputs` as for :func:`results`."""
    devices = [
        each.device if isinstance(each, torch.Tensor) else tensor.device
        for tensor, each in zip(tensors, splits)
    ]

    def with_splits(tensor: torch.Tensor, result: _ffi.Result, index: int) -> Exchanged:
        received = result.received_splits
        return tensor, torch.tensor(received, dtype=torch.int32, device=devices[index])

    return results(tensors, single, outputs, with_splits)


def _start(tensors, splits, name, process_set, single, waits) -> int:
    process_set_id = process_sets.check(process_set)
    ops.check_ready()
    tensors = check_group(tensors)
    if len(splits) != len(tensors):
        raise ValueError(
            "grouped_alltoall needs splits for each of its {} tensors, got {}".format(
                len(tensors), len(splits)
            )
        )
    size = process_set.size()
    counts = [_checked_splits(tensor, each, size) for tensor, each in zip(tensors, splits)]
    fields = [_fields(*each) for each in zip(tensors, counts)]
    with ops.naming("alltoall" if single else "grouped_alltoall", name, process_set_id) as name:
        names = names_of(name, len(tensors), single)
        if _devices.take(tensors):
            outputs = [_room(*each) for each in zip(tensors, counts)]
            finish = _exchanged(tensors, splits, single, outputs)
            arguments = (outputs, names, finish, process_set_id)
            return _devices.start(_ffi.ALLTOALL, tensors, *arguments, each=fields)
        sources = [_tensors.on_host(tensor) for tensor in tensors]
        requests = [
            _tensors.request(each, _ffi.ALLTOALL, source, **own)
            for each, source, own in zip(names, sources, fields)
        ]
        finish = _exchanged(tensors, splits, single, None)
        return ops.submit(requests, finish, sources, process_set_id, waits)


@_tensors.not_compiled
def alltoall_async(
    tensor: torch.Tensor,
    splits: Splits = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts an :func:`alltoall` and returns its handle; synchronize returns (output,
    received_splits)."""
    return _start([tensor], [splits], name, process_set, single=True, waits=False)


def _exchange(tensor, splits, name, process_set) -> Exchanged:
    handle = _start([tensor], [splits], name, process_set, single=True, waits=True)
    return ops.synchronize(handle)


def _sent_back(
    grad: torch.Tensor, received: torch.Tensor, rows: int, process_set: ProcessSet
) -> torch.Tensor:
    """The gradient of a tensor of `rows` rows, from that of what was received."""
    sent, _ = alltoall(grad.contiguous(), received, process_set=process_set)
    if sent.shape[0] < rows:
        unsent = sent.new_zeros((rows - sent.shape[0], *sent.shape[1:]))
        sent = torch.cat([sent, unsent])
    return sent


class HorovodAlltoall(torch.autograd.Function):
    """Differentiable alltoall."""

    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):
        output, received = _exchange(tensor, splits, name, process_set)
        ctx.received, ctx.rows, ctx.process_set = received, tensor.shape[0], process_set
        ctx.mark_non_differentiable(received)
        return output, received

    @staticmethod
    def backward(ctx, grad, _):
        return _sent_back(grad, ctx.received, ctx.rows, ctx.process_set), None, None, None


@_tensors.not_compiled
def alltoall(
    tensor: torch.Tensor,
    splits: Splits = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Union[torch.Tensor, Exchanged]:
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
        output, received = _exchange(tensor, splits, name, process_set)
    return output if splits is None else (output, received)


@_tensors.not_compiled
def grouped_alltoall_async(
    tensors: Sequence[torch.Tensor],
    splits: Optional[Sequence[Splits]] = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a :func:`grouped_alltoall` and returns its handle; synchronize returns the list of
    (output, received_splits)."""
    return _start_group(tensors, splits, name, process_set, waits=False)


def _start_group(tensors, splits, name, process_set, waits) -> int:
    tensors = list(tensors)
    splits = [None] * len(tensors) if splits is None else list(splits)
    return _start(tensors, splits, name, process_set, single=False, waits=waits)


def _exchange_group(tensors, splits, name, process_set) -> List[Exchanged]:
    return ops.synchronize(_start_group(tensors, splits, name, process_set, waits=True))


class HorovodGroupedAlltoall(torch.autograd.Function):
    """Differentiable grouped alltoall: the outputs, then the received splits."""

    @staticmethod
    def forward(ctx, splits, name, process_set, *tensors):
        pairs = _exchange_group(tensors, splits, name, process_set)
        outputs, received = zip(*pairs)
        ctx.received, ctx.process_set = received, process_set
        ctx.rows = [tensor.shape[0] for tensor in tensors]
        ctx.mark_non_differentiable(*received)
        return (*outputs, *received)

    @staticmethod
    def backward(ctx, *grads):
        own = [
            _sent_back(grad, received, rows, ctx.process_set)
            for grad, received, rows in zip(grads, ctx.received, ctx.rows)
        ]
        return (None, None, None, *own)


@_tensors.not_compiled
def grouped_alltoall(
    tensors: Sequence[torch.Tensor],
    splits: Optional[Sequence[Splits]] = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Union[List[torch.Tensor], List[Exchanged]]:
    """:func:`alltoall` of several tensors, which become ready together; `splits` are a list of
    those of each tensor. Returns the list of what alltoall returns for each. Differentiable.

    The tensors, named ``<name>_<i>of<n>``, may differ in shape and type.
    """
    tensors = check_group(tensors)
    if differentiable(*tensors):
        values = HorovodGroupedAlltoall.apply(splits, name, process_set, *tensors)
        pairs = list(zip(values[: len(tensors)], values[len(tensors) :]))
    else:
        pairs = _exchange_group(tensors, splits, name, process_set)
    return [output for output, _ in pairs] if splits is None else pairs
