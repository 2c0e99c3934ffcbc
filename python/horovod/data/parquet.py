"""Tables in Parquet files, read in parts: the rows of one rank, in the order of an epoch."""

from collections.abc import Iterator, Sequence
from typing import Any, Optional

import numpy
import pyarrow
import pyarrow.dataset

from horovod.data.data_loader_base import BaseDataLoader
from horovod.data.elastic_rows import ElasticRows
from horovod.data.read_ahead import ReadAhead

Columns = dict[str, numpy.ndarray]  # of the same length


class ParquetTable:
    """The table in a Parquet file, or in all Parquet files of a folder in the order of their names. Rows are numbered from 0.

    Reading keeps the row groups of the last call in memory. Not thread-safe.

    Args:
      path: the path of the file or folder in the file system.
      columns: the names of the columns to read; None: all.
      filesystem: a file system of pyarrow or fsspec; None: the local one.

    Attributes:
      group_sizes: the numbers of rows of the row groups.
      schema: the pyarrow schema of these columns.

    Raises:
      ValueError: a column does not exist.
      OSError: a file can't be read.
    """

    def __init__(self, path: str, columns: Optional[Sequence[str]] = None, filesystem: Any = None) -> None:
        # Without partitioning: the names of folders are no columns.
        dataset = pyarrow.dataset.dataset(path, filesystem=filesystem, format="parquet", partitioning=None)
        self.columns = list(dataset.schema.names if columns is None else columns)
        missing = [name for name in self.columns if name not in dataset.schema.names]
        if missing:
            raise ValueError(f"{path} has no column {missing[0]}; it has {', '.join(dataset.schema.names)}")
        self.schema = pyarrow.schema([dataset.schema.field(name) for name in self.columns])
        files = sorted(dataset.get_fragments(), key=lambda fragment: fragment.path)
        self._groups = [group for file in files for group in file.split_by_row_group()]
        self.group_sizes = [group.row_groups[0].num_rows for group in self._groups]
        self._ends = numpy.cumsum(self.group_sizes)
        self._newest: dict[int, Columns] = {}  # the groups of the last call: the next one may begin within them

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def read(self, rows: numpy.ndarray) -> Columns:
        """Returns the rows with these numbers, in this order.

        Numbers and booleans become arrays of one dimension. Lists, also those of a fixed size, become further dimensions and must
        have the same length in each row. Dictionaries become their values. Texts, bytes and other types, as decimals and structs,
        become arrays of objects.

        Args:
          rows: an integer array of row numbers.
        """
        groups = numpy.searchsorted(self._ends, rows, side="right")
        runs: list[Columns] = []  # of each group the consecutive rows that contain the requested ones
        places = rows.copy()  # of the rows in all runs together
        length = 0
        used: dict[int, Columns] = {}
        for group in numpy.unique(groups).tolist():
            here = groups == group
            first, last = int(rows[here].min()), int(rows[here].max())
            places[here] += length - first
            length += last + 1 - first
            start = int(self._ends[group]) - self.group_sizes[group]
            columns = used[group] = self._newest.get(group) or self._read_group(group)
            runs.append({name: column[first - start : last + 1 - start] for name, column in columns.items()})
        self._newest = used
        return {name: _joined(name, [run[name] for run in runs]).take(places, axis=0) for name in self.columns}

    def _read_group(self, group: int) -> Columns:
        table = self._groups[group].to_table(columns=self.columns)
        return {name: _array(name, table.column(name)) for name in self.columns}


def _joined(name: str, runs: list[numpy.ndarray]) -> numpy.ndarray:
    if len({run.shape[1:] for run in runs}) > 1:
        raise ValueError(_unequal(name))
    return runs[0] if len(runs) == 1 else numpy.concatenate(runs)


def _unequal(name: str) -> str:
    return f"column {name} has lists of different lengths: they can't be made an array"


def _array(name: str, column: pyarrow.ChunkedArray) -> numpy.ndarray:
    values = column.combine_chunks()
    if isinstance(values, pyarrow.ChunkedArray):  # an empty one, or by older versions of pyarrow
        values = pyarrow.concat_arrays(values.chunks) if values.num_chunks else pyarrow.array([], column.type)
    shape = [len(values)]
    while (length := _length_of_lists(name, values)) is not None:
        shape.append(length)
        values = values.flatten()
    if pyarrow.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if not pyarrow.types.is_floating(values.type):  # in which a null becomes a NaN
        _refuse_nulls(name, values)
    return numpy.asarray(values.to_numpy(zero_copy_only=False)).reshape(shape)


def _length_of_lists(name: str, values: pyarrow.Array) -> Optional[int]:
    """Returns the length that all lists have; None: the values are not lists."""
    fixed = pyarrow.types.is_fixed_size_list(values.type)
    if not (fixed or pyarrow.types.is_list(values.type) or pyarrow.types.is_large_list(values.type)):
        return None
    _refuse_nulls(name, values)
    if fixed:
        return int(values.type.list_size)
    lengths = numpy.diff(values.offsets.to_numpy())
    if len(lengths) and (lengths != lengths[0]).any():
        raise ValueError(_unequal(name))
    return int(lengths[0]) if len(lengths) else 0


def _refuse_nulls(name: str, values: pyarrow.Array) -> None:
    if values.null_count:
        raise ValueError(f"column {name} has rows without a value (null), which only columns of floats may have")


class ParquetLoader(BaseDataLoader):
    """A loader of batches of this rank's rows of a table, read ahead on a thread. A batch is a dictionary of arrays by column;
    the last batch of an epoch may be shorter. Put `rows` into an elastic state, and call its ``record_batch`` and
    ``set_epoch``.

    Args:
      table: the table.
      rows: the distribution of the table's rows, made from its `group_sizes`; its blocks are a multiple of the batch size.
      batch_size: the number of rows of a batch.
      read_ahead: how many blocks of rows are read ahead.

    Raises:
      ValueError: `block_rows` is not a multiple of the batch size.
    """

    def __init__(self, table: ParquetTable, rows: ElasticRows, batch_size: int, read_ahead: int = 1) -> None:
        if batch_size < 1 or rows.block_rows % batch_size:
            raise ValueError(f"blocks of {rows.block_rows} rows can't be cut into batches of {batch_size}")
        self._table, self._rows, self._batch_size, self._read_ahead = table, rows, batch_size, read_ahead

    def __len__(self) -> int:
        return -(-len(self._rows) // self._batch_size)

    def _iterate(self) -> Iterator[Columns]:
        blocks = ReadAhead(map(self._table.read, self._rows.blocks()), self._read_ahead)
        try:
            for block in blocks:
                length = len(next(iter(block.values())))
                for start in range(0, length, self._batch_size):
                    yield {name: column[start : start + self._batch_size] for name, column in block.items()}
        finally:
            blocks.close()
