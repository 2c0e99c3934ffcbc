"""Parquet files as the estimators for Spark read them. No Spark is started."""

import decimal
import threading

import fsspec
import numpy
import pyarrow
import pyarrow.parquet
import pytest

from horovod.data.elastic_rows import ElasticRows
from horovod.data.parquet import ParquetLoader, ParquetTable


def write(folder, name, table, group=3):
    folder.mkdir(exist_ok=True)
    pyarrow.parquet.write_table(table, folder / name, row_group_size=group)


@pytest.fixture(autouse=True)
def one_rank(monkeypatch):
    be_rank(monkeypatch, 0, 1)


def be_rank(monkeypatch, rank, size):
    monkeypatch.setattr("horovod.elastic.cursor.rank", lambda: rank)
    monkeypatch.setattr("horovod.elastic.cursor.size", lambda: size)


@pytest.fixture
def numbers(tmp_path):
    """A folder with two files of the numbers 0 to 9, of lists with them, and of texts."""
    for name, values in (("b.parquet", range(4, 10)), ("a.parquet", range(4))):
        columns = {"number": values, "list": [[n, -n] for n in values], "text": [str(n) for n in values]}
        write(tmp_path / "data", name, pyarrow.table({key: list(column) for key, column in columns.items()}))
    (tmp_path / "data" / "_SUCCESS").touch()
    return str(tmp_path / "data")


@pytest.mark.parametrize("filesystem", [None, fsspec.filesystem("file")], ids=["pyarrow's", "fsspec's"])
def test_rows_by_number(numbers, filesystem):
    table = ParquetTable(numbers, filesystem=filesystem)
    assert (len(table), table.group_sizes) == (10, [3, 1, 3, 3])
    rows = table.read(numpy.array([9, 0, 3, 4, 9]))
    assert rows["number"].tolist() == [9, 0, 3, 4, 9]
    assert rows["list"].tolist() == [[9, -9], [0, 0], [3, -3], [4, -4], [9, -9]]
    assert rows["text"].tolist() == ["9", "0", "3", "4", "9"]
    assert (rows["number"].dtype, rows["list"].dtype) == (numpy.int64, numpy.int64)


def test_some_columns(numbers):
    table = ParquetTable(numbers, ["text"])
    assert list(table.read(numpy.array([1]))) == ["text"] == table.schema.names
    with pytest.raises(ValueError, match="has no column nonsense; it has number, list, text"):
        ParquetTable(numbers, ["number", "nonsense"])


def test_types(tmp_path):
    values = {
        "float": pyarrow.array([1.5, None], pyarrow.float32()),
        "bool": [True, False],
        "matrix": [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]],
        "bytes": [b"a", b""],
    }
    write(tmp_path / "data", "one.parquet", pyarrow.table(values))
    rows = ParquetTable(str(tmp_path / "data")).read(numpy.array([1, 0]))
    assert rows["float"].dtype == numpy.float32 and numpy.isnan(rows["float"][0]) and rows["float"][1] == 1.5
    assert (rows["bool"].dtype, rows["bool"].tolist()) == (numpy.bool_, [False, True])
    assert rows["matrix"].tolist() == [[[5, 6], [7, 8]], [[1, 2], [3, 4]]]
    assert rows["bytes"].tolist() == [b"", b"a"]


def test_lists_of_a_fixed_size_are_dimensions_and_dictionaries_their_values(tmp_path):
    row = pyarrow.list_(pyarrow.float32(), 2)
    values = {
        "embedding": pyarrow.array([[1, 2], [3, 4], [5, 6]], row),
        "matrix": pyarrow.array([[[1, 2]], [[3, 4]], [[5, 6]]], pyarrow.list_(row, 1)),
        "lists": pyarrow.array([[[1, 2]], [[3, 4]], [[5, 6]]], pyarrow.list_(row)),
        "kind": pyarrow.array([7, 8, 7]).dictionary_encode(),
    }
    write(tmp_path / "data", "one.parquet", pyarrow.table(values), group=2)
    rows = ParquetTable(str(tmp_path / "data")).read(numpy.array([2, 0]))
    assert (rows["embedding"].dtype, rows["embedding"].tolist()) == (numpy.float32, [[5, 6], [1, 2]])
    assert rows["matrix"].tolist() == rows["lists"].tolist() == [[[5, 6]], [[1, 2]]]
    assert (rows["kind"].dtype, rows["kind"].tolist()) == (numpy.int64, [7, 7])


def test_other_types_are_objects(tmp_path):
    values = {"decimal": [decimal.Decimal("1.5")], "struct": [{"a": 1}]}
    write(tmp_path / "data", "one.parquet", pyarrow.table(values))
    rows = ParquetTable(str(tmp_path / "data")).read(numpy.array([0]))
    assert {name: (column.dtype, column.tolist()) for name, column in rows.items()} == {
        "decimal": (numpy.dtype(object), values["decimal"]),
        "struct": (numpy.dtype(object), values["struct"]),
    }


@pytest.mark.parametrize(
    "values, message",
    [
        (pyarrow.array([[1], None], pyarrow.list_(pyarrow.int64(), 1)), r"column x has rows without a value \(null\)"),
        (pyarrow.array(["a", None]).dictionary_encode(), r"column x has rows without a value \(null\)"),
        ([1, None], r"column x has rows without a value \(null\)"),
        ([[1], None], r"column x has rows without a value \(null\)"),
        ([[1], [1, 2]], "column x has lists of different lengths"),
        ([["a"], [None]], r"column x has rows without a value \(null\)"),
    ],
)
@pytest.mark.parametrize("group", [1, 2])
def test_value_that_is_not_an_array_is_reported(tmp_path, values, message, group):
    write(tmp_path / "data", "one.parquet", pyarrow.table({"x": values}), group)
    with pytest.raises(ValueError, match=message):
        ParquetTable(str(tmp_path / "data")).read(numpy.array([0, 1]))


def test_batches_of_an_epoch(numbers):
    table = ParquetTable(numbers)
    rows = ElasticRows(table.group_sizes, block_rows=4)
    loader = ParquetLoader(table, rows, batch_size=2)
    batches = list(loader)
    assert len(loader) == 5 and [len(batch["number"]) for batch in batches] == [2] * 5
    seen = numpy.concatenate([batch["number"] for batch in batches]).tolist()
    assert sorted(seen) == list(range(10)) and seen == numpy.concatenate(list(rows.blocks())).tolist()
    for batch in batches:
        assert batch["list"][:, 1].tolist() == (-batch["number"]).tolist()
    with pytest.raises(ValueError, match="blocks of 4 rows can't be cut into batches of 3"):
        ParquetLoader(table, rows, batch_size=3)


def test_ranks_share_an_epoch(numbers, monkeypatch):
    seen = []
    for rank in range(3):
        be_rank(monkeypatch, rank, 3)
        table = ParquetTable(numbers, ["number"])
        loader = ParquetLoader(table, ElasticRows(table.group_sizes, 2), 2)
        batches = list(loader)
        assert [len(batch["number"]) for batch in batches] == [2, 2]
        seen += numpy.concatenate([batch["number"] for batch in batches]).tolist()
    assert set(seen) == set(range(10)) and len(seen) == 12


def test_iteration_that_is_left_ends_its_thread(numbers):
    table = ParquetTable(numbers)
    batches = iter(ParquetLoader(table, ElasticRows(table.group_sizes, 2), 2))
    next(batches)
    batches.close()
    assert "horovod read ahead" not in [thread.name for thread in threading.enumerate()]
