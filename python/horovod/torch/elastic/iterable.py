"""The elastic stream of items for torch's data loaders."""

from collections.abc import Iterator
from typing import Any

import torch

from horovod.elastic.iterable import ElasticIterable


class ElasticIterableDataset(ElasticIterable, torch.utils.data.IterableDataset):  # type: ignore[misc]  # torch is Any here
    """Deals out the items of an iterable to the ranks one by one; the counterpart of
    :class:`ElasticSampler` for data without a length.

    Put it into a ``TorchState`` and a DataLoader with at most one worker; call :meth:`record_batch`
    after each batch, before commit, and :meth:`set_epoch` at the end of an epoch. Use the same
    batch size on all ranks. As there, what is dealt changes only in :meth:`reset`: iterating again
    gives the same items.

    What is guaranteed is what :class:`ElasticSampler` guarantees: each item is part of the
    committed work of an epoch exactly once, except for up to ``num_replicas - 1`` items at the very
    end, repeated so that all ranks get equally many; what was processed but not committed when a
    worker failed is dealt again.

    Every rank goes through all items and keeps its own, and goes through those of the committed
    work again after a change.

    Args:
      source: gives an iterator over the same items in the same order on every rank, as often as it
        is asked. If it has a ``set_epoch(epoch)``, that is called before, to choose the order.

    Iterating raises ValueError in a DataLoader with several workers, which would mix up the order.
    """

    def __iter__(self) -> Iterator[Any]:
        worker = torch.utils.data.get_worker_info()
        if worker is not None and worker.num_workers > 1:
            raise ValueError("ElasticIterableDataset needs a DataLoader with num_workers=0 or 1")
        return super().__iter__()
