"""Prepared data as a LightningDataModule."""

import importlib
import itertools
from collections.abc import Iterator
from typing import Any, Optional

from horovod.lightning import _packages
from horovod.spark.common._columns import Metadata, dense_columns
from horovod.spark.common.datamodule import ParquetDataModule
from horovod.spark.torch.datamodule import MapIterable, tensors

_base: Any = importlib.import_module(_packages.in_use()[0]).LightningDataModule


class StepsOfEpochs:
    """A loader of `steps` batches for each epoch; the next one begins where that has ended.

    Args:
      batches: are given without an end.
    """

    def __init__(self, batches: Any, steps: int) -> None:
        self._batches, self._steps = batches, steps
        self._rest: Optional[Iterator[Any]] = None

    def __len__(self) -> int:
        return self._steps

    def __iter__(self) -> Iterator[Any]:
        if self._rest is None:
            self._rest = iter(self._batches)
        return itertools.islice(self._rest, self._steps)


class PetastormDataModule(_base):  # type: ignore[misc]
    """Batches {column: tensor} of prepared data. The name is Horovod's; it reads by pyarrow, and needs no Petastorm.

    Args:
      metadata: of the columns, for sparse vectors.
      others: as for :class:`horovod.spark.common.datamodule.DataModule`.
    """

    def __init__(self, metadata: Optional[Metadata] = None, **arguments: Any) -> None:
        super().__init__()
        self.has_val: bool = arguments.get("has_val", True)
        self._metadata, self._data = metadata or {}, ParquetDataModule(**arguments)

    def train_dataloader(self) -> Any:
        return self._loader(self._data.train_data(), self._data.steps_per_epoch_train)

    def val_dataloader(self) -> Any:
        return self._loader(self._data.val_data(), self._data.steps_per_epoch_val) if self.has_val else []

    def _loader(self, epochs: Any, steps: Optional[int]) -> StepsOfEpochs:
        batches = MapIterable(epochs, map_fn=lambda batch: tensors(dense_columns(batch, self._metadata)))
        return StepsOfEpochs(batches, steps or len(epochs))
