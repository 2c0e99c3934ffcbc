"""Broadcast: one rank's tensor to all ranks."""

from collections.abc import Sequence
from typing import Optional

import torch

from horovod.common.collective import Call
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.torch._differentiable import Differentiable, collectives, recording
from horovod.torch._tensors import not_compiled

__all__ = [
    "broadcast",
    "broadcast_",
    "broadcast_async",
    "broadcast_async_",
    "grouped_broadcast",
    "grouped_broadcast_",
    "grouped_broadcast_async",
    "grouped_broadcast_async_",
]

_broadcast = collectives.broadcast


@not_compiled
def broadcast_async(
    tensor: torch.Tensor,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a :func:`broadcast` and returns its handle."""
    return _broadcast.start(tensor, Call(name, process_set, False, {"root_rank": root_rank}))


@not_compiled
def broadcast_async_(
    tensor: torch.Tensor,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a :func:`broadcast_` and returns its handle."""
    return _broadcast.start(tensor, Call(name, process_set, True, {"root_rank": root_rank}))


class HorovodBroadcast(Differentiable):
    """Differentiable broadcast."""


@not_compiled
def broadcast(
    tensor: torch.Tensor,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Returns rank `root_rank`'s tensor on all ranks of the process set; shape and type must be the
    same on all. `root_rank` is the root's number among all ranks, whatever the set.

    Differentiable: the gradients are averaged on the root, and 0 elsewhere.

    Raises as :mod:`horovod.torch.mpi_ops` says; ValueError if `root_rank` is not in the process set.
    """
    call = Call(name, process_set, False, {"root_rank": root_rank})
    return recording.run(_broadcast, tensor, call, HorovodBroadcast)


@not_compiled
def broadcast_(
    tensor: torch.Tensor,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """:func:`broadcast` in place; returns `tensor`. Not differentiable."""
    return _broadcast.run(tensor, Call(name, process_set, True, {"root_rank": root_rank}))


@not_compiled
def grouped_broadcast_async(
    tensors: Sequence[torch.Tensor],
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a :func:`grouped_broadcast` and returns its handle."""
    return _broadcast.start_group(tensors, Call(name, process_set, False, {"root_rank": root_rank}))


@not_compiled
def grouped_broadcast_async_(
    tensors: Sequence[torch.Tensor],
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a :func:`grouped_broadcast_` and returns its handle."""
    return _broadcast.start_group(tensors, Call(name, process_set, True, {"root_rank": root_rank}))


class HorovodGroupedBroadcast(Differentiable):
    """Differentiable grouped broadcast."""


@not_compiled
def grouped_broadcast(
    tensors: Sequence[torch.Tensor],
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:
    """:func:`broadcast` of several tensors, which become ready together; returns the list of
    results.

    The tensors, named ``<name>_<i>of<n>``, may differ in shape and type. Differentiable.
    """
    call = Call(name, process_set, False, {"root_rank": root_rank})
    return list(recording.run_group(_broadcast, tensors, call, HorovodGroupedBroadcast))


@not_compiled
def grouped_broadcast_(
    tensors: Sequence[torch.Tensor],
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:
    """:func:`grouped_broadcast` in place; returns the tensors. Not differentiable."""
    return list(_broadcast.run_group(tensors, Call(name, process_set, True, {"root_rank": root_rank})))
