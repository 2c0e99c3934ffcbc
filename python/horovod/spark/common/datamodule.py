"""Readers of prepared data in the processes of a training: the interface, and the default module."""

import abc
import importlib
from typing import Any, Callable, Optional

from horovod.data.elastic_rows import ElasticRows
from horovod.data.parquet import Columns, ParquetLoader, ParquetTable
from horovod.spark.common._batches import Epochs, InMemory, file_system_of, transformed
from horovod.spark.common._task_rows import VALIDATION, TaskRows, is_of_task, path_of, rows_of_each_process


class DataModule(abc.ABC):
    """A process's part of the data. It is a context manager; a subclass may open files in it. Each process makes one. The arguments
    are attributes.

    Args:
      train_dir, val_dir: URLs of folders with Parquet files.
      num_train_epochs: the number of epochs.
      has_val: whether there is data for validation.
      train_batch_size, val_batch_size: the number of rows of a batch.
      shuffle_size: how many rows are shuffled with one another.
      transform_fn: a function that takes a row, {column: value}, and returns the row to be used.
      inmemory_cache_all: whether this process keeps its part in memory.
      cur_shard, shard_count: the number of this part, and of all parts.
      schema_fields: the names of the columns.
      storage_options: arguments of the fsspec file system.
      steps_per_epoch_train, steps_per_epoch_val: the number of batches of an epoch.
      verbose: whether progress is reported.
      shuffle: whether training data is shuffled.
      random_seed: the seed of the order.
      transformation_edit_fields: (column, dtype, shape, ...) of the columns that `transform_fn` adds or changes.
      transformation_removed_fields: the columns that `transform_fn` drops.
      others: not used.
    """

    short_name: Optional[str] = None

    def __init__(
        self,
        train_dir: str,
        val_dir: str,
        num_train_epochs: int = 1,
        has_val: bool = True,
        train_batch_size: int = 32,
        val_batch_size: int = 32,
        shuffle_size: int = 1000,
        transform_fn: Optional[Callable[[dict[str, Any]], dict[str, Any]]] = None,
        inmemory_cache_all: bool = False,
        cur_shard: int = 0,
        shard_count: int = 1,
        schema_fields: Optional[list[str]] = None,
        storage_options: Optional[dict[str, Any]] = None,
        steps_per_epoch_train: Optional[int] = 1,
        steps_per_epoch_val: Optional[int] = 1,
        verbose: Any = True,
        shuffle: bool = True,
        random_seed: Optional[int] = 0,
        transformation_edit_fields: Any = None,
        transformation_removed_fields: Any = None,
        **others: Any,
    ) -> None:
        self.train_dir, self.val_dir, self.has_val = train_dir, val_dir, has_val
        self.num_train_epochs = num_train_epochs
        self.train_batch_size, self.val_batch_size = train_batch_size, val_batch_size
        self.shuffle, self.shuffle_size, self.random_seed = shuffle, shuffle_size, random_seed
        self.transform_fn = transform_fn
        self.transformation_edit_fields = transformation_edit_fields
        self.transformation_removed_fields = transformation_removed_fields
        self.inmemory_cache_all = inmemory_cache_all
        self.cur_shard, self.shard_count = cur_shard, shard_count
        self.schema_fields, self.storage_options = schema_fields, storage_options
        self.steps_per_epoch_train, self.steps_per_epoch_val = steps_per_epoch_train, steps_per_epoch_val
        self.verbose = verbose

    def __enter__(self) -> "DataModule":
        return self

    def __exit__(self, *raised: Any) -> None:  # noqa: B027  # most have nothing to close
        """Closes what was opened."""

    @abc.abstractmethod
    def train_data(self, reader: Any = None) -> Any:
        """Returns an iterable of batches, {column: array}, which repeats without end."""

    @abc.abstractmethod
    def val_data(self, reader: Any = None) -> Any:
        """Returns an iterable of batches for validation, as :meth:`train_data` does."""

    @classmethod
    def register(cls) -> None:
        """Makes the module known by its `short_name`."""
        _modules[str(cls.short_name)] = cls


_modules: dict[str, Any] = {}


def datamodule_from_name(name: str) -> Any:
    """Returns a data module's class.

    Args:
      name: the short name with which it was registered, or its full name, ``package.module.Class``.

    Raises:
      ValueError: there is no such class.
    """
    if name in _modules:
        return _modules[name]
    module, _, cls = name.rpartition(".")
    if not module:
        raise ValueError(f"there is no data module {name}: give {', '.join(sorted(_modules))} or package.module.Class")
    return getattr(importlib.import_module(module), cls)


class ParquetDataModule(DataModule):
    """Reads by pyarrow, ahead of the training on a thread. Each row comes once in an epoch; all ranks of the world have equally
    many, so up to ``hvd.size() - 1`` rows come twice."""

    short_name = "parquet"

    def train_data(self, reader: Any = None) -> Epochs:
        return self._epochs(self.train_dir, self.train_batch_size, self.shuffle and self.shuffle_size > 0)

    def val_data(self, reader: Any = None) -> Epochs:
        return self._epochs(self.val_dir, self.val_batch_size, False)

    def _epochs(self, url: str, batch_size: int, shuffle: bool) -> Epochs:
        block = -(-max(1, self.shuffle_size) // batch_size) * batch_size
        if is_of_task(url):
            table = ParquetTable(path_of(url), self.schema_fields)
            length = rows_of_each_process()[url == VALIDATION]
            seed = (self.random_seed or 0) + self.cur_shard
            rows: ElasticRows = TaskRows(table.group_sizes, block, length, shuffle, seed)
        else:
            path, file_system = file_system_of(url, self.storage_options)
            table = ParquetTable(path, self.schema_fields, file_system)
            rows = ElasticRows(table.group_sizes, block, shuffle, self.random_seed or 0)
        loader = ParquetLoader(table, rows, batch_size)
        source = InMemory(loader, batch_size, shuffle, self.random_seed or 0) if self.inmemory_cache_all else loader
        return Epochs(source, rows, self._changed)

    def _changed(self, batch: Columns) -> Columns:
        if self.transform_fn is not None:
            batch = transformed(batch, self.transform_fn, self.transformation_edit_fields or ())
        removed = self.transformation_removed_fields or ()
        return {name: column for name, column in batch.items() if name not in removed}


ParquetDataModule.register()
