"""The Spark session that a job's tasks run in: a classic one, with a SparkContext in this process, or one of Spark
Connect."""

import abc
import contextlib
import inspect
import re
import urllib.parse
import uuid
from typing import Any

import pyspark

from horovod.runner._addresses import own_address_towards
from horovod.runner._engine_run import Engine
from horovod.runner._engine_task import Task
from horovod.spark._task import SparkTask

_NO_SESSION = "horovod.spark needs an active SparkContext: make a SparkSession first"
_LOCAL = re.compile(r"local(\[.*\])?$")


class Session(Engine):
    """The interface of a session, as an engine."""

    title = "Spark"

    @abc.abstractmethod
    def parallelism(self) -> int:
        """Returns how many tasks Spark runs at once. Raises ValueError if Spark does not say."""

    @abc.abstractmethod
    def setting(self, name: str, default: str) -> str:
        """Returns a setting of Spark."""


def active_session() -> Session:
    """Returns the active session. Raises RuntimeError if there is none."""
    context = pyspark.SparkContext._active_spark_context
    if context is not None:
        return ClassicSession(context)
    with contextlib.suppress(ImportError):
        from pyspark.sql.connect.session import SparkSession

        session = SparkSession.getActiveSession()
        if session is not None:
            return ConnectSession(session)
    raise RuntimeError(_NO_SESSION)


class ClassicSession(Session):
    """A session with a SparkContext in this process."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self.notices_leaving = self.setting("spark.decommission.enabled", "false") == "true"
        self._group = f"horovod.spark.run.{uuid.uuid4().hex}"

    def parallelism(self) -> int:
        return int(self._context.defaultParallelism)

    def name_of_caller(self) -> str:
        if _LOCAL.match(self._context.master):
            return "127.0.0.1"
        return self.setting("spark.driver.host", "127.0.0.1")

    def run(self, task: Task, count: int, at_once: bool) -> None:
        self._context.setJobGroup(self._group, "Horovod", interruptOnCancel=True)
        partitions = self._context.parallelize(range(count), count)
        stage = partitions.barrier() if at_once else partitions
        stage.mapPartitionsWithIndex(SparkTask(task).of_partition).collect()

    def cancel(self) -> None:
        self._context.cancelJobGroup(self._group)

    def leaves(self, executor: str) -> bool:
        scheduler = self._context._jsc.sc().taskScheduler()
        return bool(scheduler.getExecutorDecommissionState(executor).isDefined())

    def setting(self, name: str, default: str) -> str:
        return str(self._context.getConf().get(name, default))


class RowsSession(ClassicSession):
    """A classic session whose tasks get the partitions of a DataFrame, one each. Needs Spark 3.5."""

    preparing_seconds = 86400.0  # to write the rows

    def __init__(self, context: Any, df: Any) -> None:
        super().__init__(context)
        if "barrier" not in inspect.signature(df.mapInArrow).parameters:
            raise ValueError(f"store=None needs Spark 3.5 or later, this is {pyspark.__version__}; give a store")
        self._df = df

    def run(self, task: Task, count: int, at_once: bool) -> None:
        self._context.setJobGroup(self._group, "Horovod", interruptOnCancel=True)
        self._df.mapInArrow(SparkTask(task).of_rows, "status long", barrier=at_once).collect()


class ConnectSession(Session):
    """A session of Spark Connect. It does not report executors that are about to leave."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._tag = f"horovod-{uuid.uuid4().hex}"

    def parallelism(self) -> int:
        raise ValueError("horovod.spark.run: give num_proc; Spark Connect does not say how many tasks can run")

    def name_of_caller(self) -> str:
        server = urllib.parse.urlsplit("//" + str(self._session.client.host)).hostname
        return own_address_towards(server or "127.0.0.1")

    def run(self, task: Task, count: int, at_once: bool) -> None:
        self._session.addTag(self._tag)
        rows = self._session.range(0, count, 1, count)
        rows.mapInArrow(SparkTask(task).of_batches, "status long", barrier=at_once).collect()

    def cancel(self) -> None:
        self._session.interruptTag(self._tag)

    def setting(self, name: str, default: str) -> str:
        try:
            return str(self._session.conf.get(name, default))
        except Exception:  # the server does not report some of them
            return default
