"""A Spark task of a job: it runs an agent, whose worker calls the function. Only this module is needed where the
executors run."""

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Optional

from horovod.runner import _handover
from horovod.runner._job import JoinInfo, environment_of_workers
from horovod.runner._joined_agent import JoinedAgent, output_to_caller
from horovod.spark.task import DEVICES_VARIABLE


class Task(NamedTuple):
    """What all tasks of a job are given; a secret, since `info` is. Called once in each attempt of a task, whose number
    in the stage is `index`; returns the agent's exit code."""

    info: JoinInfo
    env: dict[str, str]
    executable: Optional[str]
    nics: tuple[str, ...]
    elastic: bool

    def __call__(self, index: int) -> int:
        from pyspark import TaskContext

        context = TaskContext.get()
        name = task_name(index, context.attemptNumber() if self.elastic and context is not None else None)
        caller = _handover.Worker.of(json.loads(self.info.worker_stdin), "")
        caller.put_task(f"{name} {_executor()}", True)
        flags = ["--network-interfaces", ",".join(self.nics)] if self.nics else []
        agent = JoinedAgent(
            self.info,
            [self.executable or sys.executable, "-m", "horovod.runner.run_task"],
            name,
            {**environment_of_workers(), DEVICES_VARIABLE: json.dumps(_devices_of(context)), **self.env},
            output_to_caller(self.info, _write_here),
            flags,
        )
        status = agent.wait()
        again = False
        with contextlib.suppress(OSError):  # the caller has ended
            again = caller.put_task(name, False)
        if self.elastic and (again or status != 0):
            # Spark starts only tasks anew that have failed.
            raise RuntimeError(f"{name} has left the job; Spark starts it again, where there is room")
        return status

    def of_partition(self, index: int, _: Iterable[Any]) -> Iterator[int]:
        """For RDD.mapPartitionsWithIndex."""
        yield self(index)

    def of_batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """For DataFrame.mapInArrow, of rows with their partition's number in "id"."""
        import pyarrow

        for batch in batches:
            for row in batch.to_pylist():
                yield pyarrow.RecordBatch.from_pylist([{"status": self(row["id"])}], pyarrow.schema([("status", pyarrow.int64())]))


def task_name(index: int, attempt: Optional[int]) -> str:
    """An agent's name. Each attempt of an elastic job's task is a host of its own: what was learned of the executor of an
    earlier one does not hold for the next."""
    return f"task{index}" if attempt is None else f"task{index}.{attempt}"


def _executor() -> str:
    """The number of the executor that this process belongs to, as it is found in the command line of its JVM; "-" without
    one, as in local mode."""
    pid = os.getppid()
    with contextlib.suppress(OSError):
        while pid > 1:
            words = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
            if "--executor-id" in words[:-1]:
                return words[words.index("--executor-id") + 1]
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return "-"


def _devices_of(context: Any) -> list[str]:
    resources = context.resources() if context is not None else {}
    return list(resources["gpu"].addresses) if "gpu" in resources else []


def _write_here(stream: int, text: str) -> None:
    os.write(stream, text.encode(errors="replace"))
