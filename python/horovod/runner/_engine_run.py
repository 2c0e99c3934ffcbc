"""One run on an engine whose tasks start agents (Spark, Dask), seen from the caller: the job's daemon, the engine's tasks,
and what comes first of their ends."""

import abc
import contextlib
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional

from horovod.runner import _jobs
from horovod.runner._addresses import own_address
from horovod.runner._engine_options import Options
from horovod.runner._engine_progress import EngineEnded, Event, JobEnded, Progress, TaskBegan, TaskEnded
from horovod.runner._engine_task import Task, task_name
from horovod.runner._job import Job, Limits
from horovod.runner._task_registry import TaskRegistry

_ENDING_SECONDS = 10.0  # for tasks to end after the job, and for the job after the tasks
_CANCEL_SECONDS = 1.0  # for the engine to end after it was told, before it is told again
_ENGINE_SECONDS = 1.0  # for the engine to see that all tasks have ended
_NOTICE_SECONDS = 10.0  # of waiting for tasks, until that is said
_LOOK_SECONDS = 1.0  # between two questions for executors that leave
_VERDICT_SECONDS = 3.0  # for the job to end after an agent of it has
_DAEMON_SECONDS = 60.0  # that agents have beyond the time for tasks to begin
_AGENT = "horovod-agent: "
_REFUSED = 2  # exit code of an agent that was started wrongly, or of its job
_TIMED_OUT = (
    "Timed out waiting for {engine} tasks to start. Please check that you have enough resources to run all Horovod "
    "processes. Each Horovod process runs in a {engine} task. You may need to increase the start_timeout parameter to a "
    "larger value if your {engine} resources are allocated on-demand. {count}. Timeout after {seconds} seconds."
)


class Engine(abc.ABC):
    """Where tasks run. An object is for one job; `cancel` and `leaves` are called from other threads than `run`, and `cancel`
    more than once."""

    title: str  # in messages: "Spark"
    notices_leaving = False  # whether `leaves` is worth asking

    @abc.abstractmethod
    def name_of_caller(self) -> str:
        """What the tasks' machines call this one: a name or an address."""

    @abc.abstractmethod
    def run(self, task: Task, count: int, at_once: bool) -> None:
        """Has :meth:`Task.run` called in `count` tasks, with different names (:func:`task_name`), and returns when they have
        ended. `at_once`: all of them start or none, where the engine can do so.

        An elastic job may have fewer. A task of it that has raised, or was lost, starts again when there is room, as the
        next attempt.

        Raises: what the engine does if it can't run them, or a task of fixed size has raised."""

    @abc.abstractmethod
    def cancel(self) -> None:
        """Has `run` return soon. Tasks end by themselves when their job has ended."""

    def leaves(self, executor: str) -> bool:
        """Whether that executor, as it was given to :meth:`Task.run`, soon goes away."""
        return False


@dataclass(frozen=True)
class Call:
    """A function and its arguments."""

    function: Callable[..., Any]
    args: Optional[Sequence[Any]]
    kwargs: Optional[Mapping[str, Any]]

    def __call__(self) -> Any:
        return self.function(*(() if self.args is None else self.args), **(self.kwargs or {}))


@dataclass(frozen=True)
class Sizes:
    """Of an elastic job: how many processes it begins with, and its limits."""

    count: int
    least: int
    most: int


def run_fixed(
    engine: Engine, call: Call, options: Options, count: int, start_timeout: float, at_once: bool = True
) -> list[Any]:
    """Runs a job of fixed size; returns its results in rank order. Raises as :meth:`Run.results`, and TypeError or ValueError
    for a call or a size that can't be.

    `at_once`: as for :meth:`Engine.run`."""
    hosts = [task_name(index, None) for index in range(count)]
    limits = Limits(count, hosts=hosts, start_timeout=start_timeout + _DAEMON_SECONDS)
    return _run(engine, call, options, limits, count, start_timeout, at_once)


def run_elastic(
    engine: Engine,
    call: Call,
    options: Options,
    sizes: Sizes,
    start_timeout: float,
    elastic_timeout: Optional[float],
    reset_limit: Optional[int],
) -> list[Any]:
    """Runs an elastic job; returns the results of those at its end, in rank order. Raises as :func:`run_fixed`."""
    limits = Limits(
        sizes.count,
        sizes.least,
        sizes.most,
        start_timeout=start_timeout + _DAEMON_SECONDS,
        elastic_timeout=elastic_timeout,
        reset_limit=reset_limit,
    )
    return _run(engine, call, options, limits, sizes.most, start_timeout, at_once=False)


def _run(
    engine: Engine, call: Call, options: Options, limits: Limits, tasks: int, start_timeout: float, at_once: bool
) -> list[Any]:
    name = engine.name_of_caller()
    elastic = limits.min_num_proc is not None
    with Job(limits, [own_address(name)], name, options.report) as job:
        run = Run(job, engine, elastic, limits.num_proc, start_timeout, options)
        job.serve(call, run.on_output, run)
        task = Task(job.join_info, dict(options.env or {}), options.executable, options.networks(), elastic)
        run.start(task, tasks, at_once)
        return run.results()


class Run:
    """Belongs to one thread, but for `on_output` and what :class:`_handover.Tasks` has.

    In an elastic job executors that soon go away are drained: their tasks leave without the loss of a step, and the engine
    starts them again elsewhere.

    Args:
      job: serves the function.
      elastic: whether the job is.
      least: how many tasks must begin within `start_timeout` seconds from now.
      options: show what processes and agents print, and what the user is told.
    """

    def __init__(
        self, job: Job, engine: Engine, elastic: bool, least: int, start_timeout: float, options: Options
    ) -> None:
        self._job, self._engine, self._elastic, self._least = job, engine, elastic, least
        self._start_timeout, self._options = start_timeout, options
        now = time.monotonic()
        self._progress = Progress(elastic, least, now + _NOTICE_SECONDS, now + start_timeout)
        self._registry = TaskRegistry()
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._job_is_over = threading.Event()
        self._last_words = ""  # of an agent: written before its task's end is told, and read after

    def on_output(self, stream: int, text: str) -> None:
        """From any thread: whole lines of the processes, or of an agent, whose last one says why it has ended."""
        said = [line for line in text.splitlines() if line.startswith(_AGENT)]
        if said:
            self._last_words = said[-1].removeprefix(_AGENT)
        # A stream of the user's that fails must not stop the processes: they would tell it again and again.
        with contextlib.suppress(Exception):
            self._options.show(stream, text)

    def begin(self, name: str, executor: Optional[str]) -> bool:
        """See :class:`_handover.Tasks`."""
        self._events.put(TaskBegan(name))
        return self._registry.begin(name, executor)

    def end(self, name: str, exit_code: int) -> bool:
        """See :class:`_handover.Tasks`."""
        self._events.put(TaskEnded(name, refused=exit_code == _REFUSED))
        return self._registry.end(name)

    def job_goes_on(self) -> bool:
        """See :class:`_handover.Tasks`."""
        return self._registry.job_goes_on()

    def start(self, task: Task, count: int, at_once: bool) -> None:
        """Starts the tasks, at least `least` of them. Call it once."""
        self._on_thread("engine", lambda: self._run_engine(task, count, at_once))
        self._on_thread("job's end", self._wait_for_job)
        if self._elastic and self._engine.notices_leaving:
            self._on_thread("leaving executors", self._watch_executors)

    @staticmethod
    def _on_thread(name: str, function: Callable[[], None]) -> None:
        threading.Thread(target=function, name=f"horovod {name}", daemon=True).start()

    def _run_engine(self, task: Task, count: int, at_once: bool) -> None:
        try:
            self._engine.run(task, count, at_once)
            self._events.put(EngineEnded(None))
        except BaseException as error:
            self._events.put(EngineEnded(error))

    def _wait_for_job(self) -> None:
        status = self._job.wait()
        assert status is not None
        self._registry.close()
        self._job_is_over.set()
        self._events.put(JobEnded(status))

    def _watch_executors(self) -> None:
        while not self._job_is_over.wait(_LOOK_SECONDS):
            with contextlib.suppress(Exception):  # of an engine that ends, which its `run` tells
                for name in self._registry.take_leaving(self._engine.leaves):
                    self._job.drain(name)

    def results(self) -> list[Any]:
        """Waits for the end; returns the results in rank order. Raises RuntimeError or TimeoutError. However this ends,
        the tasks have ended, too."""
        try:
            status = self._wait()
            if status != 0:
                raise RuntimeError(_jobs.explain(status, self._job.handover.failures(), self._job.last_line()))
            results = self._job.handover.results()
            missing = [rank for rank in range(self._least) if rank not in results]
            if missing and not (self._elastic and results):  # an elastic job has those of the ranks at its end
                raise RuntimeError(f"no result came back from ranks {missing}")
            return [results[rank] for rank in sorted(results)]
        finally:
            self._cancel()

    def _cancel(self) -> None:
        """More than once: what has not reached the engine yet can't be cancelled there."""
        deadline = time.monotonic() + _ENDING_SECONDS
        while not self._progress.engine_is_over and time.monotonic() < deadline:
            with contextlib.suppress(Exception):  # it has gone
                self._engine.cancel()
            self._take_until(lambda: self._progress.engine_is_over, _CANCEL_SECONDS)

    def _wait(self) -> int:
        """The job's exit code."""
        while True:
            event = self._take(self._progress.patience(time.monotonic()))
            if event is None:
                self._give_up_or_notice()
            elif isinstance(event, JobEnded):
                self._wait_for_tasks()
                return event.exit_code
            elif isinstance(event, EngineEnded):
                return self._status_without_tasks(event.error)
            elif isinstance(event, TaskEnded) and event.refused and self._progress.is_refused(time.monotonic()):
                return self._status_after_refusal()

    def _take(self, patience: Optional[float]) -> Optional[Event]:
        """The next event, which the progress then has, too, or None after so many seconds."""
        try:
            event = self._events.get(timeout=patience)
        except queue.Empty:
            return None
        self._progress.take(event, time.monotonic())
        return event

    def _take_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Whether that holds within so many seconds."""
        deadline = time.monotonic() + seconds
        while not condition():
            if self._take(max(0.0, deadline - time.monotonic())) is None:
                return False
        return True

    def _give_up_or_notice(self) -> None:
        now, count, title, seconds = time.monotonic(), self._progress.count(), self._engine.title, self._start_timeout
        if self._progress.is_late(now):
            raise TimeoutError(_TIMED_OUT.format(engine=title, count=count, seconds=seconds))
        if self._progress.take_notice(now):
            self._options.report(
                f"horovod: {count}; the others wait for room in {title}, for at most {seconds} seconds (start_timeout)"
            )

    def _wait_for_tasks(self) -> None:
        """After the job: those that run end by themselves; those that never got a slot must be cancelled."""
        progress = self._progress
        ended = self._take_until(lambda: progress.engine_is_over or not progress.tasks_run, _ENDING_SECONDS)
        if ended and progress.has_started:
            self._take_until(lambda: progress.engine_is_over, _ENGINE_SECONDS)

    def _status_after_refusal(self) -> int:
        """The job's exit code, if that was the agent's. Else the engine would start the agent again and again."""
        status = self._job.wait(_VERDICT_SECONDS)
        if status is None:
            raise RuntimeError(f"{self._engine.title} task could not start its process: {self._last_words}")
        return status

    def _status_without_tasks(self, error: Optional[BaseException]) -> int:
        """The job's exit code when no task is left."""
        status = self._job.wait(_ENDING_SECONDS)
        if status is not None:
            return status
        if error is not None:
            raise RuntimeError(f"{self._engine.title} job has failed, see the error above. {_brief(error)}") from error
        raise RuntimeError(f"{self._engine.title}'s tasks have ended, but the job has not")


def _brief(error: BaseException) -> str:
    """The line of the engine's traceback that says why."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if "Error: " in line or "Exception: " in line]
    return (causes or lines or [type(error).__name__])[-1]
