"""The warning for samplers of torch that deal an epoch to the ranks of a former world."""

import weakref
from collections.abc import Iterable, Iterator
from typing import Any, Optional

from torch.utils.data.distributed import DistributedSampler

from horovod.common import _warnings
from horovod.common._process import World, process
from horovod.common.basics import is_initialized, rank, size

_OLD = (
    "a DistributedSampler still deals an epoch to {old} ranks, but the world has {new} now: samples are left out or read twice. Use "
    "hvd.elastic.ElasticSampler, or make the sampler and its DataLoader anew in the function under hvd.elastic.run"
)


class SamplerWatch:
    """Looks at the samplers among the values of a state, in each world once. One that was never for all ranks is left alone."""

    def __init__(self) -> None:
        self._for_all: weakref.WeakSet[DistributedSampler[object]] = weakref.WeakSet()
        self._world: Optional[World] = None  # in which it has looked
        self._has_warned = False

    def look(self, values: Iterable[object]) -> None:
        """Warns, once, of a sampler that was for all ranks of a former world. Of all ranks rank 0 does so.

        Args:
          values: those of the state.
        """
        if self._has_warned or not is_initialized() or self._world is process.world:
            return
        self._world = process.world
        for sampler in _samplers(values):
            if sampler.num_replicas == size():
                self._for_all.add(sampler)
            elif sampler in self._for_all and not self._has_warned:
                self._has_warned = True
                if rank() == 0:
                    _warnings.warn(_OLD.format(old=sampler.num_replicas, new=size()))


def _samplers(values: Iterable[object]) -> Iterator[DistributedSampler[Any]]:
    for value in values:
        # Loaders with a state of their own, such as those of torchdata, have a sampler.
        for each in (value, getattr(value, "sampler", None)):
            if isinstance(each, DistributedSampler):
                yield each
