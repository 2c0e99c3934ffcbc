"""A task of an engine (Spark, Dask): it runs an agent, whose worker calls the function. What is here runs where the engine's
tasks do."""

import contextlib
import json
import os
import sys
import time
from typing import Callable, NamedTuple, Optional

from horovod.runner import _handover
from horovod.runner._job import JoinInfo, environment_of_workers
from horovod.runner._joined_agent import JoinedAgent, output_to_caller

_VERDICT_SECONDS = 0.5


class Task(NamedTuple):
    """What all tasks of a job are given; a secret, since `info` is."""

    info: JoinInfo
    env: dict[str, str]
    executable: Optional[str]
    nics: tuple[str, ...]
    elastic: bool

    def run(
        self,
        name: str,
        executor: Optional[str],
        variables: dict[str, str],
        on_start: Optional[Callable[[JoinedAgent], None]] = None,
    ) -> int:
        """Runs an agent of that name until it has left the job; returns its exit code. `executor`: what the engine may take
        away; `variables`: of the worker, beside its own.

        Raises RuntimeError in an elastic job that goes on without it: the engine is to start the task again."""
        caller = _handover.Worker.of(json.loads(self.info.worker_stdin), "")
        if caller.begin_task(name, executor):
            return 0
        agent = JoinedAgent(
            self.info,
            [self.executable or sys.executable, "-m", "horovod.runner.run_task"],
            name,
            {**environment_of_workers(), **variables, **self.env},
            output_to_caller(self.info, _write_here),
            ["--network-interfaces", ",".join(self.nics)] if self.nics else [],
        )
        if on_start is not None:
            on_start(agent)
        status = agent.wait()
        if self._is_wanted_again(caller, name, status):
            raise RuntimeError(f"{name} has left the job, and may come again where there is room")
        return status

    def _is_wanted_again(self, caller: _handover.Worker, name: str, status: int) -> bool:
        """Whether an elastic job goes on without this task, whose agent has ended with that code."""
        with contextlib.suppress(OSError):  # the caller has ended, and with it the job
            if caller.end_task(name, status):
                return True
            if self.elastic and status != 0:
                # Agents of a job that has failed end a moment before the caller knows.
                time.sleep(_VERDICT_SECONDS)
                return caller.job_goes_on()
        return False

    def __repr__(self) -> str:
        return f"Task({self.info})"  # what is in `env` may be secret, too


def task_name(index: int, attempt: Optional[int]) -> str:
    """An agent's name. Each attempt of an elastic job's task is a host of its own: what was learned of the executor of an
    earlier one does not hold for the next."""
    return f"task{index}" if attempt is None else f"task{index}.{attempt}"


def _write_here(stream: int, text: str) -> None:
    os.write(stream, text.encode(errors="replace"))
