"""Broadcast: gives one rank's tensor to all ranks."""

from collections.abc import Sequence
from typing import Optional

import torch

from horovod.common.collective import Call
from horovod.common.ops import Handle
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
) -> Handle[torch.Tensor]:
    """Starts a :func:`broadcast` and returns at once.

    Args:
      tensor, root_rank, name, process_set: as for :func:`broadcast`.

    Returns:
      A handle for :func:`synchronize` and :func:`poll`.
    """
    return _broadcast.begin(tensor, Call(name, process_set, False, {"root_rank": root_rank}))


@not_compiled
def broadcast_async_(
    tensor: torch.Tensor,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Handle[torch.Tensor]:
    """Starts a :func:`broadcast_` and returns at once. `tensor` must not be used until :func:`synchronize` has returned.

    Args:
      tensor: on the root the values to send, on other ranks the tensor that is overwritten.
      root_rank, name, process_set: as for :func:`broadcast`.

    Returns:
      A handle for :func:`synchronize` and :func:`poll`.
    """
    return _broadcast.begin(tensor, Call(name, process_set, True, {"root_rank": root_rank}))


class HorovodBroadcast(Differentiable):
    """The autograd function of :func:`broadcast`."""


@not_compiled
def broadcast(
    tensor: torch.Tensor,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Returns rank `root_rank`'s tensor on all ranks of the process set.

    Differentiable: the gradients are averaged on the root, and are zero on the other ranks.

    Args:
      tensor: on the root the values to send. Shape and dtype are the same on all ranks.
      root_rank: the root's rank in the world, also with a process set.
      name: the operation's name; see :mod:`horovod.torch.mpi_ops`.
      process_set: the ranks that take part.

    Returns:
      A new tensor with the root's values.

    Raises:
      ValueError: `root_rank` is not in the process set.
      HorovodInternalError: see :mod:`horovod.torch.mpi_ops` for the errors of all collectives.

    Example:
      >>> import torch
      >>> hvd.broadcast(torch.tensor([1.5]), root_rank=0)
      tensor([1.5000])
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
    """Overwrites `tensor` with rank `root_rank`'s tensor. Not differentiable.

    Args:
      tensor: on the root the values to send, on other ranks the tensor that is overwritten.
      root_rank, name, process_set: as for :func:`broadcast`.

    Returns:
      `tensor`.
    """
    return _broadcast.run(tensor, Call(name, process_set, True, {"root_rank": root_rank}))


@not_compiled
def grouped_broadcast_async(
    tensors: Sequence[torch.Tensor],
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Handle[tuple[torch.Tensor, ...]]:
    """Starts a :func:`grouped_broadcast` and returns at once.

    Args:
      tensors, root_rank, name, process_set: as for :func:`grouped_broadcast`.

    Returns:
      A handle for :func:`synchronize` and :func:`poll`.
    """
    return _broadcast.begin_group(tensors, Call(name, process_set, False, {"root_rank": root_rank}))


@not_compiled
def grouped_broadcast_async_(
    tensors: Sequence[torch.Tensor],
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Handle[tuple[torch.Tensor, ...]]:
    """Starts a :func:`grouped_broadcast_` and returns at once. The tensors must not be used until :func:`synchronize` has
    returned.

    Args:
      tensors: on the root the values to send, on other ranks the tensors that are overwritten.
      root_rank, name, process_set: as for :func:`broadcast`.

    Returns:
      A handle for :func:`synchronize` and :func:`poll`.
    """
    return _broadcast.begin_group(tensors, Call(name, process_set, True, {"root_rank": root_rank}))


class HorovodGroupedBroadcast(Differentiable):
    """The autograd function of :func:`grouped_broadcast`."""


@not_compiled
def grouped_broadcast(
    tensors: Sequence[torch.Tensor],
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:
    """Broadcasts several tensors as one operation: none is sent before all are ready on all ranks. Differentiable.

    Args:
      tensors: at least one tensor, each as for :func:`broadcast`. They may differ in shape and dtype, and are named
        ``<name>_<i>of<n>``.
      root_rank, name, process_set: as for :func:`broadcast`.

    Returns:
      A list of new tensors with the root's values.
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
    """Overwrites several tensors with rank `root_rank`'s, as one operation. Not differentiable.

    Args:
      tensors: on the root the values to send, on other ranks the tensors that are overwritten.
      root_rank, name, process_set: as for :func:`broadcast`.

    Returns:
      The tensors, as a list.
    """
    return list(_broadcast.run_group(tensors, Call(name, process_set, True, {"root_rank": root_rank})))
