"""A Spark task of a job."""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Optional

from pyspark import SparkFiles, TaskContext

from horovod.common._ancestors import ancestors
from horovod.runner._engine_task import Task, task_name
from horovod.spark.task import DEVICES_VARIABLE


class SparkTask(NamedTuple):
    """The function that Spark runs in each of a job's tasks; called with the number of the task in its stage."""

    task: Task

    def __call__(self, index: int) -> int:
        return self._run(index, {})

    def _run(self, index: int, more: dict[str, str]) -> int:
        context = TaskContext.get()
        attempt = context.attemptNumber() if self.task.elastic and context is not None else None
        variables = {DEVICES_VARIABLE: json.dumps(_devices_of(context)), **more}
        return self.task.run(task_name(index, attempt), _executor(), variables, _sent_files())

    def of_partition(self, index: int, _: Iterable[Any]) -> Iterator[int]:
        """Runs a task, for RDD.mapPartitionsWithIndex."""
        yield self(index)

    def of_rows(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Runs a task with the rows on which its process trains, for DataFrame.mapInArrow."""
        import pyarrow

        from horovod.spark.common._task_rows import ROWS_VARIABLE, written

        index = TaskContext.get().partitionId()
        self.task.begin(task_name(index, None), _executor())  # to wait for rows and to write them may take long
        with written(batches) as folder:
            status = self._run(index, {ROWS_VARIABLE: folder})
        yield pyarrow.RecordBatch.from_pylist([{"status": status}], pyarrow.schema([("status", pyarrow.int64())]))

    def of_batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Runs a task, for DataFrame.mapInArrow; the rows have the number of a task in "id"."""
        import pyarrow

        schema = pyarrow.schema([("status", pyarrow.int64())])
        for batch in batches:
            for row in batch.to_pylist():
                yield pyarrow.RecordBatch.from_pylist([{"status": self(row["id"])}], schema)


def _executor() -> Optional[str]:
    """Returns the number of the executor that this process belongs to, from the command line of its JVM; None without one, as in
    local mode.
    """
    return next((number for each in ancestors() if (number := each.option("--executor-id"))), None)


def _sent_files() -> list[str]:
    """Returns the entries of Python's path with files that Spark has sent to this executor: --py-files, SparkContext.addPyFile. On
    executors of a cluster they are relative to the working directory, which a worker may leave.
    """
    root = SparkFiles.getRootDirectory()
    return [os.path.abspath(path) for path in sys.path if path.startswith(root)]


def _devices_of(context: Any) -> list[str]:
    resources = context.resources() if context is not None else {}
    return list(resources["gpu"].addresses) if "gpu" in resources else []
