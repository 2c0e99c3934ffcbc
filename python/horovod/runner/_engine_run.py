"""One run on an engine whose tasks start agents (Spark, Dask), seen from the caller: the job's daemon, the engine's tasks,
and what comes first of their ends."""

import queue
import threading
import time
from collections.abc import Sequence
from typing import Any, Callable, Optional, Protocol

from horovod.runner import _jobs
from horovod.runner._engine_options import Options
from horovod.runner._engine_task import Task
from horovod.runner._job import Job, Limits, own_address

_ENDING_SECONDS = 10.0  # for tasks to end after the job, and for the job after the tasks
_NOTICE_SECONDS = 10.0  # of waiting for tasks, until that is said
_LOOK_SECONDS = 1.0  # between two questions for executors that leave
_VERDICT_SECONDS = 3.0  # for the job to end after an agent of it has
_AGENT = "horovod-agent: "
_MISUSE = "2"  # exit code of an agent that was started wrongly, or of its job
_TIMED_OUT = (
    "Timed out waiting for {engine} tasks to start. Please check that you have enough resources to run all Horovod "
    "processes. Each Horovod process runs in a {engine} task. You may need to increase the start_timeout parameter to a "
    "larger value if your {engine} resources are allocated on-demand. {count}. Timeout after {seconds} seconds."
)


class Engine(Protocol):
    """Where tasks run."""

    title: str  # in messages: "Spark"
    notices_leaving: bool  # whether `leaves` may ever return true

    def run(self, task: Task, count: int, at_once: bool) -> None:
        """Runs `count` tasks, `at_once`: all or none; returns when they have ended. Raises what the engine does."""

    def cancel(self) -> None:
        """Ends what `run` waits for, from another thread."""

    def leaves(self, executor: str) -> bool:
        """Whether that executor of tasks soon goes away."""


class Run:
    """Belongs to one thread, but for `on_task`.

    In an elastic job executors that soon go away are drained: their tasks leave without the loss of a step, and the engine
    starts them again elsewhere.

    Args:
      job: serves the function.
      least: how many tasks must begin within `start_timeout` seconds.
      show: called with what processes and agents print, as :meth:`Options.show`.
      report: called with a line for the user.
    """

    def __init__(
        self,
        job: Job,
        engine: Engine,
        least: int,
        start_timeout: float,
        show: Callable[[int, str], None],
        report: Callable[[str], None],
    ) -> None:
        self._report = report
        self._job, self._engine, self._least, self._show = job, engine, least, show
        self._start_timeout = start_timeout
        self._deadline = time.monotonic() + start_timeout
        self._notice: Optional[float] = time.monotonic() + _NOTICE_SECONDS  # None: given
        # ("task", name, it runs), ("misuse",), ("job", exit code), ("engine", what it raised, or None)
        self._events: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._begun: set[str] = set()
        self._running: set[str] = set()
        self._engine_is_over = False
        self._executors: dict[str, str] = {}  # of the tasks that run
        self._drained: set[str] = set()
        self._ended: set[str] = set()
        self._job_is_over = threading.Event()
        self._words_of_agent = ""
        self._elastic = False

    def on_output(self, stream: int, text: str) -> None:
        """From any thread: whole lines of the processes, or of an agent, whose last one says why it has ended."""
        said = [line for line in text.splitlines() if line.startswith(_AGENT)]
        if said:
            self._words_of_agent = said[-1].removeprefix(_AGENT)
        self._show(stream, text)

    def on_task(self, text: str, runs: bool) -> bool:
        """From any thread: a task has begun, "NAME EXECUTOR", or has ended, "NAME EXIT_CODE", perhaps said twice. Returns
        whether it is wanted again, or one that has begun is not wanted any more."""
        name, _, more = text.partition(" ")
        if runs:
            self._executors[name] = more
        else:
            self._executors.pop(name, None)
        self._events.put(("task", name, runs))
        if not runs and more == _MISUSE:
            self._events.put(("misuse",))
        if runs:
            return self._job_is_over.is_set()
        first, self._ended = name not in self._ended, self._ended | {name}
        return name in self._drained or (not first and not self._job_is_over.is_set())

    def start(self, task: Task, count: int, at_once: bool) -> None:
        """Starts the tasks, at least `least` of them."""
        self._elastic = task.elastic

        def run() -> None:
            try:
                self._engine.run(task, count, at_once)
                self._events.put(("engine", None))
            except BaseException as error:
                self._events.put(("engine", error))

        threading.Thread(target=run, name="horovod engine", daemon=True).start()
        threading.Thread(target=self._wait_for_job, name="horovod job", daemon=True).start()
        if self._engine.notices_leaving:
            threading.Thread(target=self._watch_executors, name="horovod executors", daemon=True).start()

    def _wait_for_job(self) -> None:
        status = self._job.wait()
        self._job_is_over.set()
        self._events.put(("job", status))

    def _watch_executors(self) -> None:
        while not self._job_is_over.wait(_LOOK_SECONDS):
            leaving = {one for one in set(self._executors.values()) if self._engine.leaves(one)}
            for name, executor in list(self._executors.items()):
                if executor in leaving and name not in self._drained:
                    self._drained.add(name)
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
            if not self._engine_is_over:
                self._engine.cancel()
                self._wait_for_engine(_ENDING_SECONDS)

    def _wait(self) -> int:
        """The job's exit code."""
        while True:
            starting = len(self._begun) < self._least
            try:
                event = self._events.get(timeout=self._patience() if starting else None)
            except queue.Empty:
                self._give_notice_or_up()
                continue
            if event[0] == "job":
                self._wait_for_tasks()
                return int(event[1])
            self._take(event)
            if event[0] == "misuse" and not (self._elastic and self._running):
                return self._status_after_misuse()
            if self._engine_is_over:
                return self._status_without_tasks(event[1])

    def _patience(self) -> float:
        return max(0.0, min(self._deadline, self._notice or self._deadline) - time.monotonic())

    def _give_notice_or_up(self) -> None:
        count = f"{len(self._begun)} of {self._least} tasks have started"
        title, seconds = self._engine.title, self._start_timeout
        if time.monotonic() >= self._deadline:
            raise TimeoutError(_TIMED_OUT.format(engine=title, count=count, seconds=seconds))
        self._notice = None
        self._report(
            f"horovod: {count}; the others wait for room in {title}, for at most {seconds} seconds (start_timeout)"
        )

    def _take(self, event: tuple[Any, ...]) -> None:
        if event[0] == "task":
            _, name, runs = event
            self._begun.add(name)
            (self._running.add if runs else self._running.discard)(name)
        elif event[0] == "engine":
            self._engine_is_over = True

    def _wait_for_tasks(self) -> None:
        """After the job: those that run end by themselves; those that never got a slot must be cancelled."""
        deadline = time.monotonic() + _ENDING_SECONDS
        while self._running and not self._engine_is_over:
            try:
                self._take(self._events.get(timeout=max(0.0, deadline - time.monotonic())))
            except queue.Empty:
                return
        if not self._engine_is_over and len(self._begun) >= self._least:
            self._wait_for_engine(1.0)

    def _wait_for_engine(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self._engine_is_over:
            try:
                self._take(self._events.get(timeout=max(0.0, deadline - time.monotonic())))
            except queue.Empty:
                return

    def _status_after_misuse(self) -> int:
        """The job's exit code, if that was the agent's. Else the engine would start the agent again and again."""
        status = self._job.wait(_VERDICT_SECONDS)
        if status is None:
            raise RuntimeError(f"{self._engine.title} task could not start its process: {self._words_of_agent}")
        return status

    def _status_without_tasks(self, error: Optional[BaseException]) -> int:
        """The job's exit code when no task is left."""
        status = self._job.wait(_ENDING_SECONDS)
        if status is not None and (status != 0 or error is None):
            return status
        if error is not None and status is None:
            raise RuntimeError(f"{self._engine.title} job has failed, see the error above. {_brief(error)}") from error
        if status is None:
            raise RuntimeError(f"{self._engine.title}'s tasks have ended, but the job has not")
        return status


def run_job(
    engine: Engine,
    name: str,
    limits: Limits,
    call: tuple[Callable[..., Any], Sequence[Any], Optional[dict[str, Any]]],
    options: Options,
    tasks: int,
    at_once: bool,
    start_timeout: float,
) -> list[Any]:
    """Runs a job in at most so many of the engine's tasks, and returns its results in rank order.

    `name`: what the tasks call this machine; `call`: a function and its arguments. Raises as :meth:`Run.results`."""
    function, args, kwargs = call
    with Job(limits, [own_address(name)], name, options.report) as job:
        run = Run(job, engine, limits.num_proc, start_timeout, options.show, options.report)
        # A function of a function travels by value: the tasks need not have the caller's modules.
        job.serve(lambda: function(*args, **(kwargs or {})), run.on_output, run.on_task)
        elastic = limits.min_num_proc is not None
        task = Task(job.join_info, dict(options.env or {}), options.executable, options.networks(), elastic)
        run.start(task, tasks, at_once)
        return run.results()


def _brief(error: BaseException) -> str:
    """The line of the engine's traceback that says why."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if "Error: " in line or "Exception: " in line]
    return (causes or lines or [type(error).__name__])[-1]
