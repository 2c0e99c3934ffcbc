"""Distribution of a dataset's samples over the ranks. The rest of an epoch is distributed again when their number changes."""

import functools
import math
import random
from collections.abc import Iterator
from typing import Any, Optional

from horovod.common import _warnings
from horovod.elastic.cursor import JobCursor


class ElasticSampler(JobCursor):
    """Distributes the indices of a dataset over the ranks, and distributes the unprocessed ones again after a change of the
    world.

    Put it into an elastic state; call :meth:`record_batch` after each batch, before commit, and :meth:`set_epoch` at the end
    of an epoch. Use the same batch size on all ranks.

    The distribution changes only in :meth:`reset`, which ``set_epoch``, ``load_state_dict`` and every change of the world
    call. Until then the length stays the same, whatever is recorded, and each iteration gives the same indices.

    Guarantee: the progress is one number for the whole job, saved and restored with the weights. So, through any sequence of
    commits, failures and changes of the world, each index is part of the committed work of an epoch exactly once, except for
    up to ``num_replicas - 1`` indices at the very end, which are repeated so that all ranks get the same number. A batch that
    was processed but not committed when a worker failed is undone with the weights: its indices are distributed again,
    perhaps to other ranks.

    Args:
      dataset: an object with a length.
      shuffle: whether the indices are shuffled anew for each epoch.
      seed: the seed of the order; the same on all ranks.

    Attributes:
      remaining_indices: the indices that are distributed to all ranks together, in order.
      num_samples: how many indices this rank gets.
      total_size: how many indices all ranks get, repeated ones included.

    Example:
      >>> from horovod.elastic.sampler import ElasticSampler
      >>> sampler = ElasticSampler(range(6), shuffle=False)
      >>> list(sampler)
      [0, 1, 2, 3, 4, 5]
      >>> sampler.record_batch(0, 4)
      >>> sampler.reset()
      >>> list(sampler)
      [4, 5]
    """

    def __init__(self, dataset: Any, shuffle: bool = True, seed: int = 0) -> None:
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.num_samples = 0
        self.total_size = 0
        self._order_of: Optional[tuple[int, int, int]] = None  # length, seed and epoch of the cached order
        self._order: list[int] = []
        JobCursor.__init__(self)

    def reset(self) -> None:
        super().reset()
        self._dealt_length = len(self.dataset)
        self._gave_nothing = False
        self.__dict__.pop("remaining_indices", None)
        left = max(0, self._dealt_length - self._dealt_from)
        self.num_samples = math.ceil(left / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    @functools.cached_property
    def remaining_indices(self) -> list[int]:
        # Computed at first use, so that a new world need not wait for it.
        return self._ordered(self._dealt_length, self._dealt_epoch)[self._dealt_from :]

    def _ordered(self, length: int, epoch: int) -> list[int]:
        if not self.shuffle:
            return list(range(length))
        if self._order_of != (length, self.seed, epoch):
            self._order = self._shuffled(length, self.seed + epoch)
            self._order_of = (length, self.seed, epoch)
        return self._order

    @staticmethod
    def _shuffled(length: int, seed: int) -> list[int]:
        """Returns the numbers below `length` in an order that depends only on `seed`, so it is the same on all ranks."""
        order = list(range(length))
        random.Random(seed).shuffle(order)
        return order

    def __iter__(self) -> Iterator[int]:
        indices = list(self.remaining_indices)
        self._warn_of_recorded(bool(indices))
        while 0 < len(indices) < self.total_size:
            indices += indices[: self.total_size - len(indices)]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def _warn_of_recorded(self, deals_again: bool) -> None:
        """Warns of an iteration over an epoch that is recorded as processed as a whole."""
        if not self.processed_num >= self._dealt_length > 0:
            return
        if deals_again:
            what = "deals epoch {} again, all of which is recorded as processed. After a change of the world it would deal nothing"
        else:
            what = "has nothing to deal: all of epoch {} is recorded as processed"
        if deals_again or self._gave_nothing:  # nothing, once: the end of an epoch in which the world changed
            text = what.format(self._dealt_epoch)
            _warnings.warn(f"ElasticSampler {text}. Call set_epoch() after every epoch.")
        self._gave_nothing = not deals_again

    def __len__(self) -> int:
        return self.num_samples
