"""The progress of a run on an engine, derived from its events. Pure: no clock, no thread."""

from dataclasses import dataclass
from typing import Optional, Union

_SETTLED_SECONDS = 10.0  # after which a task's agent has certainly joined the job


@dataclass(frozen=True)
class TaskBegan:
    """The task with that name runs."""

    name: str


@dataclass(frozen=True)
class TaskEnded:
    """The task's agent has ended. It may be reported twice."""

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
    """The tasks and the engine of one run. Times are in seconds of any one clock. Not thread-safe.

    Tasks are counted by their place. "task1.2", the third attempt, is in the place of "task1.1", whose end may never have been
    reported.

    Args:
      elastic: whether the job continues without a task.
      least: how many tasks must have begun by `deadline`.
      deadline: the time by which they must have begun.
      notice: the time at which the user is notified of tasks that are still missing.
    """

    def __init__(self, elastic: bool, least: int, notice: float, deadline: float) -> None:
        self._elastic, self._least, self._deadline = elastic, least, deadline
        self._notice: Optional[float] = notice  # None: taken
        self._begun: set[str] = set()  # places
        self._running: dict[str, tuple[str, float]] = {}  # place: the task there, and since when
        self._refused_since: Optional[float] = None
        self.engine_is_over = False

    def take(self, event: Event, now: float) -> None:
        """Applies an event that has happened now."""
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
        """Returns whether enough tasks have begun."""
        return len(self._begun) >= self._least

    @property
    def tasks_run(self) -> bool:
        """Returns whether any task runs, as far as is known: a task whose machine was lost can't report its end."""
        return bool(self._running)

    def patience(self, now: float) -> Optional[float]:
        """Returns the time in seconds until something is due without an event; None: nothing is due."""
        if self.has_started:
            return None
        due = self._deadline if self._notice is None else min(self._notice, self._deadline)
        return max(0.0, due - now)

    def is_late(self, now: float) -> bool:
        """Returns whether tasks are missing at the deadline."""
        return not self.has_started and now >= self._deadline

    def take_notice(self, now: float) -> bool:
        """Returns whether it is time for the notice. Returns True at most once."""
        if self.has_started or self._notice is None or now < self._notice:
            return False
        self._notice = None
        return True

    def count(self) -> str:
        """Returns how many tasks have begun, for messages."""
        return f"{len(self._begun)} of {self._least} tasks have started"

    def is_refused(self, now: float) -> bool:
        """Returns whether the engine's tasks can't take part.

        In a job of fixed size one refused task is enough. An elastic job continues with other tasks. While some are refused and
        started again, all running tasks may have just begun, and may be about to be refused as well; so the criterion is whether a
        task has settled in the meantime.
        """
        if self._refused_since is None:
            return False
        return not self._elastic or not self._running or now - self._refused_since >= _SETTLED_SECONDS


def _place(name: str) -> str:
    return name.partition(".")[0]
