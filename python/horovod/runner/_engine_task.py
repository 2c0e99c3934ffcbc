"""A task of an engine (Spark, Dask): it runs an agent, whose worker calls the function. This module runs where the engine's
tasks run.
"""

import contextlib
import json
import os
import time
from collections.abc import Sequence
from typing import Callable, NamedTuple, Optional

from horovod.runner import _handover
from horovod.runner._job import JoinInfo
from horovod.runner._joined_agent import JoinedAgent, output_to_caller
from horovod.runner._python import module_command, with_folders, with_package

_VERDICT_SECONDS = 0.5


class Task(NamedTuple):
    """What all tasks of a job receive. Secret, because `info` is."""

    info: JoinInfo
    env: dict[str, str]
    executable: Optional[str]
    nics: tuple[str, ...]
    elastic: bool

    def begin(self, name: str, executor: Optional[str]) -> bool:
        """Reports to the caller that the task with that name has begun, as :meth:`run` does: for a task that has to prepare itself
        for it. Returns whether it is too late.
        """
        return self._caller().begin_task(name, executor)

    def run(
        self,
        name: str,
        executor: Optional[str],
        variables: dict[str, str],
        folders: Sequence[str] = (),
        on_start: Optional[Callable[[JoinedAgent], None]] = None,
    ) -> int:
        """Runs an agent with that name until it has left the job; returns its exit code. `executor`: the part of the engine that may
        be taken away; `variables`: environment variables of the worker, in addition to its own; `folders`: where the engine has put
        modules for the task.

        Raises RuntimeError in an elastic job that continues without the task, so that the engine starts the task again.
        """
        if self.begin(name, executor):
            return 0
        agent = JoinedAgent(
            self.info,
            module_command("horovod.runner.run_task", self.executable),
            name,
            with_package(with_folders({**os.environ, **variables, **self.env}, folders), self.executable),
            output_to_caller(self.info, _write_here),
            ["--network-interfaces", ",".join(self.nics)] if self.nics else [],
        )
        if on_start is not None:
            on_start(agent)
        status = agent.wait()
        if self._is_wanted_again(name, status):
            raise RuntimeError(f"{name} has left the job, and may come again where there is room")
        return status

    def _caller(self) -> _handover.Worker:
        return _handover.Worker.of(json.loads(self.info.worker_stdin), "")

    def _is_wanted_again(self, name: str, status: int) -> bool:
        """Returns whether an elastic job continues without this task, whose agent has ended with that code."""
        caller = self._caller()
        with contextlib.suppress(OSError):  # the caller has ended, and with it the job
            if caller.end_task(name, status):
                return True
            if self.elastic and status != 0:
                # Agents of a job that has failed end a moment before the caller knows.
                time.sleep(_VERDICT_SECONDS)
                return caller.job_goes_on()
        return False

    def __repr__(self) -> str:
        return f"Task({self.info})"  # values in `env` may be secret too


def task_name(index: int, attempt: Optional[int]) -> str:
    """Returns an agent's name. Each attempt of an elastic job's task is a host of its own, because the failures of an earlier
    attempt's executor say nothing about the next one's.
    """
    return f"task{index}" if attempt is None else f"task{index}.{attempt}"


def _write_here(stream: int, text: str) -> None:
    os.write(stream, text.encode(errors="replace"))
