"""Rows a second that horovod.data reads from Parquet files into tensors, beside what pyarrow alone reads into numpy arrays; the
two take turns in one process.

    tools/bench/run reading
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy
import pyarrow
import pyarrow.dataset
import pyarrow.parquet
import torch

import horovod.torch as hvd
from horovod.data.elastic_rows import ElasticRows
from horovod.data.parquet import ParquetLoader, ParquetTable


def write(path, rows, width, group):
    """A table with a column of lists of `width` floats and one of numbers, in groups of `group` rows."""
    random = numpy.random.default_rng(1)
    values = pyarrow.array(random.random(rows * width, numpy.float32))
    lists = pyarrow.ListArray.from_arrays(
        pyarrow.array(numpy.arange(0, rows * width + 1, width, dtype=numpy.int32)), values
    )
    table = pyarrow.table({"features": lists, "label": pyarrow.array(random.random(rows))})
    pyarrow.parquet.write_table(table, path, row_group_size=group)


def by_pyarrow(path):
    """On one thread, in batches as large as it likes."""
    rows = 0
    for found in pyarrow.dataset.dataset(path).to_batches(use_threads=False):
        features = found.column(0).flatten().to_numpy().reshape(found.num_rows, -1)
        rows += len(features) + 0 * len(found.column(1).to_numpy())
    return rows


def by_horovod(path, batch, shuffle):
    table = ParquetTable(str(path))
    block = -(-16384 // batch) * batch
    rows = 0
    for found in ParquetLoader(table, ElasticRows(table.group_sizes, block, shuffle), batch):
        rows += len(torch.as_tensor(found["features"])) + 0 * len(torch.as_tensor(found["label"]))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--group", type=int, default=25_000, help="rows of a row group")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    hvd.init()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write(path, args.rows, args.width, args.group)
        contestants = {
            "pyarrow": lambda: by_pyarrow(path),
            "in order": lambda: by_horovod(path, args.batch, False),
            "shuffled": lambda: by_horovod(path, args.batch, True),
        }
        seconds = {name: [] for name in contestants}
        for turn in range(args.rounds + 1):  # the first one warms up
            for name, read in contestants.items():
                start = time.perf_counter()
                assert read() == args.rows
                if turn:
                    seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    for name, median in medians.items():
        share = statistics.median(alone / own for alone, own in zip(seconds["pyarrow"], seconds[name]))
        print(f"{name}: {args.rows / median / 1e6:.2f} million rows/s, {share:.2f} of pyarrow's speed")


if __name__ == "__main__":
    main()
