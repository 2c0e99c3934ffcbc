"""A run on an engine whose tasks start agents (Spark, Dask), as the caller sees it: the job's daemon, the engine's tasks, and
which of their ends comes first.
"""

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
from horovod.runner._engine_options import MOST_SECONDS, Options
from horovod.runner._engine_progress import EngineEnded, Event, JobEnded, Progress, TaskBegan, TaskEnded
from horovod.runner._engine_task import Task, task_name
from horovod.runner._job import Job, Limits
from horovod.runner._task_registry import TaskRegistry

_ENDING_SECONDS = 10.0  # for tasks to end after the job, and for the job after the tasks
_CANCEL_SECONDS = 1.0  # for the engine to end after a cancellation, before the next cancellation
_ENGINE_SECONDS = 1.0  # for the engine to see that all tasks have ended
_NOTICE_SECONDS = 10.0  # of waiting for tasks before a notice
_LOOK_SECONDS = 1.0  # from one check for leaving executors to the next
_VERDICT_SECONDS = 3.0  # for the job to end after an agent of it has
_DAEMON_SECONDS = 60.0  # that agents have beyond the time for tasks to begin and to prepare themselves
_AGENT = "horovod-agent: "
_REFUSED = 2  # exit code of an agent that was started wrongly, or of its job
_TIMED_OUT = (
    "{count} within start_timeout={seconds} s. Each process needs a {engine} task of its own: "
    "free resources for them, ask for fewer processes, or raise start_timeout if {engine} still adds nodes"
)


class Engine(abc.ABC):
    """The interface of engines, which run tasks. An object is for one job. `cancel` and `leaves` are called from other threads
    than `run`, and `cancel` more than once.
    """

    title: str  # in messages: "Spark"
    notices_leaving = False  # whether `leaves` is worth asking
    preparing_seconds = 0.0  # that tasks may need between :meth:`Task.begin` and :meth:`Task.run`

    @abc.abstractmethod
    def name_of_caller(self) -> str:
        """Returns the name or address under which the tasks' machines reach this machine."""

    @abc.abstractmethod
    def run(self, task: Task, count: int, at_once: bool) -> None:
        """Calls :meth:`Task.run` in `count` tasks with different names (:func:`task_name`), and returns when they have ended.
        `at_once`: either all of them start or none, if the engine supports that.

        An elastic job may run with fewer tasks. A task of it that has raised, or was lost, is started again when there is room, as
        the next attempt.

        Raises what the engine raises if it can't run them, or if a task of fixed size has raised.
        """

    @abc.abstractmethod
    def cancel(self) -> None:
        """Makes `run` return soon. Tasks end by themselves when their job has ended."""

    def room(self) -> str:
        """Returns in words how many tasks the engine can run, for those who wait for it; "" if it does not know."""
        return ""

    def leaves(self, executor: str) -> bool:
        """Returns whether an executor, as it was passed to :meth:`Task.run`, is about to leave."""
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
    """The number of processes with which an elastic job begins, and its limits."""

    count: int
    least: int
    most: int


def run_fixed(
    engine: Engine, call: Call, options: Options, count: int, start_timeout: float, at_once: bool = True
) -> list[Any]:
    """Runs a job of fixed size and returns its results, in rank order. Raises as :meth:`Run.results`, and TypeError or ValueError
    for an invalid call or size.

    `at_once`: as for :meth:`Engine.run`.
    """
    hosts = [task_name(index, None) for index in range(count)]
    limits = Limits(count, hosts=hosts, start_timeout=_time_for_agents(engine, start_timeout))
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
    """Runs an elastic job and returns the results of the processes that exist at its end, in rank order. Raises as
    :func:`run_fixed`.
    """
    limits = Limits(
        sizes.count,
        sizes.least,
        sizes.most,
        start_timeout=_time_for_agents(engine, start_timeout),
        elastic_timeout=elastic_timeout,
        reset_limit=reset_limit,
    )
    return _run(engine, call, options, limits, sizes.most, start_timeout, at_once=False)


def _time_for_agents(engine: Engine, start_timeout: float) -> float:
    """The time in seconds for the agents of all tasks to join the daemon."""
    return min(start_timeout + engine.preparing_seconds, MOST_SECONDS) + _DAEMON_SECONDS


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
    """One run. One thread uses it, except for `on_output` and the methods of :class:`_handover.Tasks`.

    In an elastic job, executors that are about to leave are drained: their tasks leave without the loss of a step, and the
    engine starts them again elsewhere.

    Args:
      job: the job, which serves the function.
      elastic: whether the job is elastic.
      least: how many tasks must begin within `start_timeout` seconds from now.
      options: how output of processes and agents, and notices, are shown.
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
        self._last_words = ""  # of an agent: written before its task's end is reported, and read after that

    def on_output(self, stream: int, text: str) -> None:
        """Takes whole lines of the processes, or of an agent, whose last line says why it has ended. Called from any thread."""
        said = [line for line in text.splitlines() if line.startswith(_AGENT)]
        if said:
            self._last_words = said[-1].removeprefix(_AGENT)
        # A failing stream of the script must not stop the processes: they would send the output again and again.
        with contextlib.suppress(BaseException):  # also SystemExit
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
            with contextlib.suppress(Exception):  # errors of an engine that ends; its `run` reports them
                for name in self._registry.take_leaving(self._engine.leaves):
                    self._job.drain(name)

    def results(self) -> list[Any]:
        """Waits for the end and returns the results, in rank order. Raises RuntimeError or TimeoutError. In any case the tasks have
        ended when it returns or raises.
        """
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
        """Cancels the run on the engine repeatedly, because tasks that have not reached the engine yet can't be cancelled there."""
        deadline = time.monotonic() + _ENDING_SECONDS
        while not self._progress.engine_is_over and time.monotonic() < deadline:
            with contextlib.suppress(Exception):  # it has gone
                self._engine.cancel()
            self._take_until(lambda: self._progress.engine_is_over, _CANCEL_SECONDS)

    def _wait(self) -> int:
        """Returns the job's exit code, after its end."""
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
        """Returns the next event, after the progress has applied it; None after that many seconds."""
        try:
            event = self._events.get(timeout=patience)
        except queue.Empty:
            return None
        self._progress.take(event, time.monotonic())
        return event

    def _take_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Returns whether the condition becomes true within that many seconds."""
        deadline = time.monotonic() + seconds
        while not condition():
            if self._take(max(0.0, deadline - time.monotonic())) is None:
                return False
        return True

    def _give_up_or_notice(self) -> None:
        now, title, seconds = time.monotonic(), self._engine.title, self._start_timeout
        count = "; ".join(filter(None, [self._progress.count(), self._engine.room()]))
        if self._progress.is_late(now):
            raise TimeoutError(_TIMED_OUT.format(engine=title, count=count, seconds=seconds))
        if self._progress.take_notice(now):
            self._options.report(
                f"horovod: {count}; the others wait for room in {title}, for at most {seconds} seconds (start_timeout)"
            )

    def _wait_for_tasks(self) -> None:
        """Waits for the tasks after the job's end. Running tasks end by themselves; those that never got a slot must be cancelled."""
        progress = self._progress
        ended = self._take_until(lambda: progress.engine_is_over or not progress.tasks_run, _ENDING_SECONDS)
        if ended and progress.has_started:
            self._take_until(lambda: progress.engine_is_over, _ENGINE_SECONDS)

    def _status_after_refusal(self) -> int:
        """Returns the job's exit code, if the agent's exit code was the job's. Otherwise the engine would start the agent again and
        again.
        """
        status = self._job.wait(_VERDICT_SECONDS)
        if status is None:
            raise RuntimeError(f"{self._engine.title} task could not start its process: {self._last_words}")
        return status

    def _status_without_tasks(self, error: Optional[BaseException]) -> int:
        """Returns the job's exit code when no task is left."""
        status = self._job.wait(_ENDING_SECONDS)
        if status is not None:
            return status
        if error is not None:
            raise RuntimeError(f"{self._engine.title} job has failed, see the error above. {_brief(error)}") from error
        raise RuntimeError(f"{self._engine.title}'s tasks have ended, but the job has not")


def _brief(error: BaseException) -> str:
    """Returns the line of the engine's traceback that states the reason."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if "Error: " in line or "Exception: " in line]
    return (causes or lines or [type(error).__name__])[-1]
