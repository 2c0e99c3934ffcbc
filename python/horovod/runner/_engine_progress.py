"""How far a run on an engine has got, as its events tell. Pure: no clock, no thread."""

from dataclasses import dataclass
from typing import Optional, Union

_SETTLED_SECONDS = 10.0  # after which a task's agent has certainly joined the job


@dataclass(frozen=True)
class TaskBegan:
    """The task of that name runs."""

    name: str


@dataclass(frozen=True)
class TaskEnded:
    """Its agent has ended; perhaps told twice."""

    name: str
    refused: bool  # the agent could not take part: it was started wrongly, say, or the job has failed so


@dataclass(frozen=True)
class JobEnded:
    """The job's daemon has ended with this exit code."""

    exit_code: int


@dataclass(frozen=True)
class EngineEnded:
    """All tasks have ended; the engine has raised `error`, if any."""

    error: Optional[BaseException]


Event = Union[TaskBegan, TaskEnded, JobEnded, EngineEnded]


class Progress:
    """The tasks and the engine of one run. Times are seconds of any one clock. Not thread-safe.

    Tasks are counted by their place: "task1.2", the third attempt, is in the place of "task1.1", of which it may never have
    been told that it has ended.

    Args:
      elastic: whether the job goes on without a task.
      least: how many tasks must have begun by `deadline`.
      notice: when the user is to be told that tasks are still missing.
    """

    def __init__(self, elastic: bool, least: int, notice: float, deadline: float) -> None:
        self._elastic, self._least, self._deadline = elastic, least, deadline
        self._notice: Optional[float] = notice  # None: taken
        self._begun: set[str] = set()  # places
        self._running: dict[str, tuple[str, float]] = {}  # place: the task there, and since when
        self._refused_since: Optional[float] = None
        self.engine_is_over = False

    def take(self, event: Event, now: float) -> None:
        """An event that has happened now."""
        if any(now - since >= _SETTLED_SECONDS for _, since in self._running.values()):
            self._refused_since = None
        if isinstance(event, TaskBegan):
            self._begun.add(_place(event.name))
            self._running[_place(event.name)] = (event.name, now)
        elif isinstance(event, TaskEnded):
            if self._running.get(_place(event.name), ("", now))[0] == event.name:
                del self._running[_place(event.name)]
            if event.refused and self._refused_since is None:
                self._refused_since = now
        elif isinstance(event, EngineEnded):
            self.engine_is_over = True

    @property
    def has_started(self) -> bool:
        """Whether as many tasks have begun as must."""
        return len(self._begun) >= self._least

    @property
    def tasks_run(self) -> bool:
        """Whether any task runs, as far as is known: one whose machine was lost cannot say that it has ended."""
        return bool(self._running)

    def patience(self, now: float) -> Optional[float]:
        """Seconds until something is due without an event; None: nothing is."""
        if self.has_started:
            return None
        due = self._deadline if self._notice is None else min(self._notice, self._deadline)
        return max(0.0, due - now)

    def is_late(self, now: float) -> bool:
        """Whether tasks are missing at the deadline."""
        return not self.has_started and now >= self._deadline

    def take_notice(self, now: float) -> bool:
        """Whether it is time for the notice; once."""
        if self.has_started or self._notice is None or now < self._notice:
            return False
        self._notice = None
        return True

    def count(self) -> str:
        """How many tasks have begun, for messages."""
        return f"{len(self._begun)} of {self._least} tasks have started"

    def is_refused(self, now: float) -> bool:
        """Whether the engine's tasks cannot take part. One that is refused ends a job of fixed size. An elastic job goes on
        with others: while some are refused, and started again, all that run may just have begun, and be about to be refused
        as well; so what counts is whether one has settled in the meantime."""
        if self._refused_since is None:
            return False
        return not self._elastic or not self._running or now - self._refused_since >= _SETTLED_SECONDS


def _place(name: str) -> str:
    return name.partition(".")[0]
