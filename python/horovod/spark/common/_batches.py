"""Batches of prepared data, epoch after epoch."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Callable, Optional

import fsspec
import numpy

from horovod.data.elastic_rows import ElasticRows
from horovod.data.parquet import Columns


def file_system_of(url: str, options: Optional[dict[str, Any]]) -> tuple[str, Any]:
    """Returns the path and the fsspec file system; None stands for the local one, which pyarrow reads faster by itself."""
    file_system, path = fsspec.core.url_to_fs(url, **(options or {}))
    return path, None if "file" in _protocols(file_system) else file_system


def _protocols(file_system: fsspec.AbstractFileSystem) -> Sequence[str]:
    return (file_system.protocol,) if isinstance(file_system.protocol, str) else file_system.protocol


class Epochs:
    """The batches of one epoch after another, without end. ``len`` is the number of batches of an epoch.

    Args:
      source: gives the batches of an epoch each time it is iterated over.
      rows: the distribution of rows, whose set_epoch is called for each epoch.
      change: a function that is applied to each batch.
    """

    def __init__(self, source: Any, rows: ElasticRows, change: Callable[[Columns], Columns]) -> None:
        self._source, self._rows, self._change = source, rows, change

    def __len__(self) -> int:
        return len(self._source)

    def __iter__(self) -> Iterator[Columns]:
        while True:
            yield from map(self._change, self._source)
            self._rows.set_epoch(self._rows.epoch + 1)


class InMemory:
    """The batches of a loader's first epoch, kept in memory, and shuffled again for each epoch."""

    def __init__(self, loader: Any, batch_size: int, shuffle: bool, seed: int) -> None:
        self._loader, self._batch_size, self._shuffle = loader, batch_size, shuffle
        self._random = numpy.random.default_rng(seed)
        self._columns: Optional[Columns] = None

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Columns]:
        columns = self._columns = self._columns or joined(self._loader)
        order = numpy.arange(len(next(iter(columns.values()))))
        if self._shuffle:
            self._random.shuffle(order)
        for start in range(0, len(order), self._batch_size):
            chosen = order[start : start + self._batch_size]
            yield {name: column[chosen] for name, column in columns.items()}


def joined(batches: Iterable[Columns]) -> Columns:
    """Returns all rows of some batches. Raises ValueError if there are none."""
    parts = list(batches)
    if not parts:
        raise ValueError("there are no rows")
    return {name: numpy.concatenate([part[name] for part in parts]) for name in parts[0]}


def transformed(
    batch: Columns, function: Callable[[dict[str, Any]], dict[str, Any]], edited: Sequence[Any] = ()
) -> Columns:
    """Returns the batch with each row, {column: value}, as the function returns it. `edited` has (column, dtype, shape, ...) of
    columns to be converted after that.
    """
    length = len(next(iter(batch.values())))
    rows = [function({name: column[number] for name, column in batch.items()}) for number in range(length)]
    columns = {name: numpy.stack([numpy.asarray(row[name]) for row in rows]) for name in rows[0]}
    for name, dtype, shape, *_ in edited:
        columns[name] = columns[name].astype(dtype).reshape(length, *shape)
    return columns
