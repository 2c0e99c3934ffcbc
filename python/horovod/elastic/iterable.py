"""Distribution of a stream of items over the ranks. The rest of an epoch is distributed again when their number changes."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from horovod.elastic.cursor import JobCursor


class ElasticIterable(JobCursor):
    """Distributes the items of an iterable over the ranks one by one: the counterpart of
    :class:`horovod.elastic.sampler.ElasticSampler` for data without a length.

    Put it into an elastic state; call :meth:`record_batch` after each batch, before commit, and :meth:`set_epoch` at the end
    of an epoch. Use the same batch size on all ranks. The distribution changes only in :meth:`reset`; until then each
    iteration gives the same items.

    The guarantee is ElasticSampler's: each item is part of the committed work of an epoch exactly once, except for up to
    ``num_replicas - 1`` items at the very end, which are repeated so that all ranks get the same number. Items that were
    processed but not committed when a worker failed are distributed again.

    Every rank iterates over all items and keeps its own; after a change it iterates over the processed items again, to skip
    them.

    Args:
      source: an iterable that gives the same items in the same order on every rank, each time it is iterated over. If it has
        a method ``set_epoch(epoch)``, that is called before, to choose the order.

    Example:
      >>> from horovod.elastic.iterable import ElasticIterable
      >>> stream = ElasticIterable("abcd")
      >>> stream.record_batch(0, 1)
      >>> stream.reset()
      >>> list(stream)
      ['b', 'c', 'd']
    """

    def __init__(self, source: Iterable[Any]) -> None:
        self.source = source
        JobCursor.__init__(self)

    def __iter__(self) -> Iterator[Any]:
        if hasattr(self.source, "set_epoch"):
            self.source.set_epoch(self._dealt_epoch)
        return self._mine(iter(self.source), self._dealt_from, self.rank, self.num_replicas)

    @staticmethod
    def _mine(items: Iterator[object], skipped: int, rank: int, num_replicas: int) -> Iterator[object]:
        items = itertools.islice(items, skipped, None)
        while True:
            dealt = list(itertools.islice(items, num_replicas))
            if not dealt:
                return
            yield dealt[rank % len(dealt)]
