"""Synchronization of torchmetrics' metrics over Horovod's ranks: by themselves they support torch.distributed only."""

import sys

import torch

import horovod.torch as hvd


def process_set_of(group: object) -> hvd.ProcessSet:
    """Returns the process set for a group of Lightning or torchmetrics: None and torch's WORLD are all ranks.

    Raises ValueError for other groups of torch.distributed.
    """
    if isinstance(group, hvd.ProcessSet):
        return group
    distributed = torch.distributed
    if group is None or (distributed.is_available() and group is distributed.group.WORLD):
        return hvd.global_process_set
    raise ValueError(f"group={group!r}: HorovodStrategy takes a hvd.ProcessSet.")


def gather(value: torch.Tensor, group: object = None) -> list[torch.Tensor]:
    """Returns the ranks' tensors, whose sizes may differ: torchmetrics' `dist_sync_fn`."""
    members = process_set_of(group)
    shapes = hvd.allgather_object(list(value.shape), process_set=members)
    flat = hvd.allgather(value.reshape(-1), process_set=members)
    counts = [torch.Size(shape).numel() for shape in shapes]
    return [part.reshape(shape) for part, shape in zip(flat.split(counts), shapes)]


def available() -> bool:
    """Returns whether there are several ranks: torchmetrics' `distributed_available_fn`."""
    return hvd.is_initialized() and hvd.size() > 1


class SynchronizedMetrics:
    """Makes the metrics among a module's children work over all ranks, until :meth:`restore`. Metrics that have a `dist_sync_fn`
    from the script are not changed.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        self._changed = []
        if "torchmetrics" not in sys.modules:
            return
        for metric in module.modules():
            if isinstance(metric, sys.modules["torchmetrics"].Metric) and not metric.dist_sync_fn:
                self._changed.append((metric, metric.distributed_available_fn))
                metric.dist_sync_fn = gather
                metric.distributed_available_fn = available

    def restore(self) -> None:
        for metric, before in self._changed:
            metric.dist_sync_fn, metric.distributed_available_fn = None, before
        self._changed = []
