"""The elastic stream of items for torch's data loaders."""

from collections.abc import Iterator
from typing import Any

import torch

from horovod.elastic.iterable import ElasticIterable


class ElasticIterableDataset(ElasticIterable, torch.utils.data.IterableDataset):  # type: ignore[misc]  # torch is Any here
    """The stream of :class:`horovod.elastic.iterable.ElasticIterable` for a DataLoader with at most
    one worker.

    Iterating raises ValueError in a DataLoader with several workers, which would mix up the order.
    """

    def __iter__(self) -> Iterator[Any]:
        worker = torch.utils.data.get_worker_info()
        if worker is not None and worker.num_workers > 1:
            raise ValueError("ElasticIterableDataset needs a DataLoader with num_workers=0 or 1")
        return super().__iter__()
