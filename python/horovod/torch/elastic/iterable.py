"""The elastic stream of items for torch's data loaders."""

from collections.abc import Iterator
from typing import Any

import torch

from horovod.elastic.iterable import ElasticIterable


class ElasticIterableDataset(ElasticIterable, torch.utils.data.IterableDataset[Any]):
    """The stream of :class:`horovod.elastic.iterable.ElasticIterable`, for a DataLoader with at most one worker.

    Args:
      source: as for ElasticIterable.

    Raises:
      ValueError: it is iterated over in a DataLoader with several workers, which would mix up the order.

    Example:
      >>> import torch
      >>> import horovod.torch as hvd
      >>> dataset = hvd.elastic.ElasticIterableDataset(range(4))
      >>> [batch.tolist() for batch in torch.utils.data.DataLoader(dataset, batch_size=2)]
      [[0, 1], [2, 3]]
    """

    def __iter__(self) -> Iterator[Any]:
        worker = torch.utils.data.get_worker_info()
        if worker is not None and worker.num_workers > 1:
            raise ValueError("ElasticIterableDataset needs a DataLoader with num_workers=0 or 1")
        return super().__iter__()
