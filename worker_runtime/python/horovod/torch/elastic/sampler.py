"""Deals out the samples of a dataset, and what is left of an epoch again when the number of ranks
changes."""

import math
from typing import Any, Iterator, List, Optional, Tuple

import torch

from horovod.torch.elastic._cursor import JobCursor


class ElasticSampler(JobCursor, torch.utils.data.Sampler):
    """Deals out a dataset to the ranks, and what is not yet processed of it again after a change of
    the world.

    Put it into a ``TorchState``; call :meth:`record_batch` after each batch, before commit, and
    :meth:`set_epoch` at the end of an epoch. Use the same batch size on all ranks.

    What is guaranteed: the progress is one number for the whole job, saved and restored with the
    weights. So, through any sequence of commits, failures and changes of the world, each index is
    part of the committed work of an epoch exactly once, except for up to ``num_replicas - 1``
    indices at the very end, repeated so that all ranks get equally many. A batch that was processed
    but not committed when a worker failed is undone with the weights: its indices are dealt again,
    perhaps to other ranks.

    Args:
      dataset: anything with a length.
      shuffle: whether each epoch has an order of its own.
      seed: of that order; the same on all ranks.
    """

    def __init__(self, dataset: Any, shuffle: bool = True, seed: int = 0) -> None:
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self._order_of: Optional[Tuple[int, int, int]] = None  # what the order was made of
        self._order: List[int] = []
        JobCursor.__init__(self)

    @property
    def remaining_indices(self) -> List[int]:
        """What all ranks together have not processed yet, in order."""
        return self._ordered()[self.processed_num :]

    @property
    def num_samples(self) -> int:
        """How many indices are left for this rank, as dealt in the present world."""
        return math.ceil(max(0, len(self.dataset) - self.processed_num) / self.num_replicas)

    @property
    def total_size(self) -> int:
        """How many indices are left for all ranks, repeated ones included."""
        return self.num_samples * self.num_replicas

    def _end(self) -> int:
        return len(self.dataset)

    def _ordered(self) -> List[int]:
        length = len(self.dataset)
        if not self.shuffle:
            return list(range(length))
        if self._order_of != (length, self.seed, self.epoch):
            generator = torch.Generator()
            generator.manual_seed(self.seed + self.epoch)
            self._order = torch.randperm(length, generator=generator).tolist()
            self._order_of = (length, self.seed, self.epoch)
        return self._order

    def __iter__(self) -> Iterator[int]:
        indices = self.remaining_indices
        total = self.total_size
        while len(indices) < total:
            indices += indices[: total - len(indices)]
        return iter(indices[self.rank : total : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples
