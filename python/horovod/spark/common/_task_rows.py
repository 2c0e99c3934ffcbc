"""Rows that Spark gives to the tasks of a training directly, without a store: each task keeps its partition of the DataFrame in
Parquet files of its own, and its process reads these."""

import contextlib
import dataclasses
import fcntl
import functools
import glob
import os
import shutil
import socket
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any, Optional

import numpy
import pyarrow
import pyarrow.parquet

from horovod.data.elastic_rows import ElasticRows

ROWS_VARIABLE = "HOROVOD_SPARK_TASK_ROWS"  # of a process: the folder with its task's files
FLAG = "__horovod_validation__"  # the column that says which rows are for validation
TRAIN, VALIDATION = "task-rows:train", "task-rows:validation"  # in place of URLs of data sets


@contextlib.contextmanager
def written(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[str]:
    """A context manager that writes batches to files in a new folder, gives the folder, and removes it at the end. It also removes
    the folders of processes on this machine that were killed."""
    root = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    root = root if os.path.isdir(root) else tempfile.gettempdir()
    _remove_leftovers(root)
    with _new_folder(root) as folder:
        with contextlib.ExitStack() as files:
            writers: dict[str, pyarrow.parquet.ParquetWriter] = {}
            for batch in batches:
                for name, part in _parts(batch):
                    if name not in writers:
                        path = path_of(name, folder)
                        writers[name] = files.enter_context(pyarrow.parquet.ParquetWriter(path, part.schema))
                    writers[name].write_table(part)
        yield folder


def _folder_prefix() -> str:
    """How the names of this machine's folders begin: several machines may share a disk, but not always its locks."""
    return f"horovod-rows-{socket.gethostname()}@"


@contextlib.contextmanager
def _new_folder(root: str) -> Iterator[str]:
    """A context manager that makes a folder, and removes it at the end. The folder is locked as long as this process lives."""
    hidden = tempfile.mkdtemp(prefix=f".{_folder_prefix()}", dir=root)  # it gets its name when it is locked
    folder = os.path.join(root, os.path.basename(hidden)[1:])
    lock = os.open(hidden, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # a disk without locks: no other process can lock the folder either
            fcntl.flock(lock, fcntl.LOCK_EX)
        os.rename(hidden, folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_leftovers(root: str) -> None:
    """Removes the folders of this user's processes that have ended without doing so."""
    # Each executor of Spark has a blockmgr-* of its own, which stays if it is killed.
    executors = glob.glob(os.path.join(glob.escape(os.path.dirname(root)), "blockmgr-*"))
    for place in {root, *executors}:
        for folder in glob.glob(os.path.join(glob.escape(place), glob.escape(_folder_prefix()) + "*")):
            with contextlib.suppress(OSError):  # it is in use, or has just been removed
                lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                try:
                    if os.fstat(lock).st_uid == os.geteuid():
                        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        shutil.rmtree(folder)
                finally:
                    os.close(lock)


def _parts(batch: pyarrow.RecordBatch) -> Iterator[tuple[str, pyarrow.Table]]:
    """The rows for training and those for validation, without the column that says which they are."""
    table = pyarrow.Table.from_batches([batch])
    flags = table.column(FLAG).to_numpy().astype(bool)
    table = table.drop([FLAG])
    for name, chosen in ((TRAIN, ~flags), (VALIDATION, flags)):
        if chosen.any():
            yield name, table.filter(pyarrow.array(chosen))


def is_of_task(url: str) -> bool:
    """Whether the URL stands for the rows of a process's own task."""
    return url in (TRAIN, VALIDATION)


def path_of(url: str, folder: Optional[str] = None) -> str:
    """The file with the rows of this process's task, or that in `folder`."""
    return os.path.join(folder or os.environ[ROWS_VARIABLE], url.partition(":")[2] + ".parquet")


def _count(url: str) -> int:
    path = path_of(url)
    return int(pyarrow.parquet.ParquetFile(path).metadata.num_rows) if os.path.exists(path) else 0


@functools.cache
def rows_of_each_process() -> tuple[int, int]:
    """How many rows each process uses in an epoch, for training and for validation: as many as the process with the most rows
    has. The first call is a collective operation of all processes.

    Raises: ValueError, on all of them, if one has no rows while others have some.
    """
    import horovod.numpy as hvd

    own = numpy.array([_count(TRAIN), _count(VALIDATION)])
    most = hvd.allreduce(own, op=hvd.Max, name="horovod.estimator.most_rows")
    least = hvd.allreduce(own, op=hvd.Min, name="horovod.estimator.least_rows")
    for kind, has, lacks in zip(("training", "validation"), most, least):
        if has and not lacks:
            raise ValueError(
                f"a process has no rows for {kind}: with store=None each needs some; train with fewer processes, with "
                "more rows, or with a store"
            )
    return int(most[0]), int(most[1])


def with_task_rows(plan: Any) -> Any:
    """The plan of a training, a dataclass, with the numbers of rows that the processes have agreed on, if they have their rows
    from their tasks. A collective operation of all processes."""
    if not is_of_task(plan.store.train_data_path):
        return plan
    import horovod.numpy as hvd

    train, validation = rows_of_each_process()
    return dataclasses.replace(plan, train_rows=train * hvd.size(), val_rows=validation * hvd.size())


class TaskRows(ElasticRows):
    """The order in which a process uses the rows that it alone has: all of them in an epoch, and the first ones again until there
    are `length`."""

    def __init__(self, group_sizes: list[int], block_rows: int, length: int, shuffle: bool, seed: int) -> None:
        self._length = length
        super().__init__(group_sizes, block_rows, shuffle, seed)

    def reset(self) -> None:
        super().reset()
        self.num_replicas, self.rank = 1, 0

    def __len__(self) -> int:
        return self._length

    def blocks(self) -> Iterator[numpy.ndarray]:
        rest = numpy.empty(0, numpy.int64)
        for block in super().blocks():  # all but the last are whole
            if len(block) == self.block_rows:
                yield block
            else:
                rest = block
        rest = numpy.concatenate([rest, self._repeated(sum(self.group_sizes))])
        for start in range(0, len(rest), self.block_rows):
            yield rest[start : start + self.block_rows]

    def _repeated(self, own: int) -> numpy.ndarray:
        """The rows that come again, in each epoch others if rows are shuffled."""
        rows = numpy.arange(own)
        if self.shuffle:
            numpy.random.default_rng([self.seed, self._dealt_epoch]).shuffle(rows)
        return numpy.resize(rows, self._length - own)
