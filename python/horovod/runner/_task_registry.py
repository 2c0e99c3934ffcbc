"""The tasks of a job on an engine, as they report themselves to the caller."""

import threading
from typing import Callable, Optional


class TaskRegistry:
    """The running tasks, and those that should be started again. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._executors: dict[str, Optional[str]] = {}  # of the tasks that run, by their names
        self._drained: set[str] = set()
        self._job_is_over = False

    def begin(self, name: str, executor: Optional[str]) -> bool:
        """Records that a task has begun. Returns whether it is too late."""
        with self._lock:
            self._executors[name] = executor
            return self._job_is_over

    def end(self, name: str) -> bool:
        """Records that a task has ended. Returns whether it was drained, and the job continues."""
        with self._lock:
            self._executors.pop(name, None)
            return name in self._drained and not self._job_is_over

    def job_goes_on(self) -> bool:
        with self._lock:
            return not self._job_is_over

    def take_leaving(self, leaves: Callable[[str], bool]) -> list[str]:
        """Returns the tasks on executors that are about to leave, each once; they should be started again."""
        with self._lock:
            running = {name: executor for name, executor in self._executors.items() if executor is not None}
        leaving = {executor for executor in set(running.values()) if leaves(executor)}  # may take its time
        with self._lock:
            found = [name for name, executor in running.items() if executor in leaving and name not in self._drained]
            self._drained.update(found)
        return found

    def close(self) -> None:
        """Records that the job is over: no task is started again."""
        with self._lock:
            self._job_is_over = True
