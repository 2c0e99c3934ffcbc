"""Prepared data as tensors."""

from collections.abc import Iterator
from typing import Any, Callable

import numpy
import torch

from horovod.spark.common.datamodule import DataModule, ParquetDataModule


class PetastormDataModule(ParquetDataModule):
    """Batches as tensors, {column: tensor}. The name is Horovod's; the data is read with pyarrow, without Petastorm."""

    short_name = "petastorm"

    def train_data(self, reader: Any = None) -> Any:
        return MapIterable(super().train_data(reader), map_fn=tensors)

    def val_data(self, reader: Any = None) -> Any:
        return MapIterable(super().val_data(reader), map_fn=tensors)


PetastormDataModule.register()


def tensors(batch: dict[str, numpy.ndarray]) -> dict[str, torch.Tensor]:
    """Returns a batch as tensors. Raises ValueError for a column that can't be one."""
    return {name: _tensor(name, column) for name, column in batch.items()}


def _tensor(name: str, column: numpy.ndarray) -> torch.Tensor:
    try:
        return torch.as_tensor(numpy.ascontiguousarray(column))
    except TypeError:
        raise ValueError(f"column {name} can't be made a tensor: it holds {column.dtype} values") from None


class MapIterable:
    """The results of `map_fn` for the items of `data`, `epochs` times; None: as often as `data` repeats itself."""

    def __init__(self, data: Any, epochs: Any = None, map_fn: Callable[[Any], Any] = lambda item: item) -> None:
        self._data, self._epochs, self._map_fn = data, epochs, map_fn

    def __len__(self) -> int:
        return len(self._data) * (self._epochs or 1)

    def __iter__(self) -> Iterator[Any]:
        for _ in range(self._epochs or 1):
            yield from map(self._map_fn, self._data)


class NVTabularDataModule(DataModule):
    """Not supported: NVTabular's loaders are no longer developed."""

    short_name = "nvtabular"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "NVTabularDataModule: this version of Horovod has no NVTabular; leave data_module away, and pyarrow reads the data"
        )

    def train_data(self, reader: Any = None) -> Any:
        raise NotImplementedError

    def val_data(self, reader: Any = None) -> Any:
        raise NotImplementedError
