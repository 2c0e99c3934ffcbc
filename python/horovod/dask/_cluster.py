"""A Dask cluster as the engine of a job: at most one task of it on each worker."""

import contextlib
import threading
import uuid
from typing import Any, Optional

import distributed

from horovod.runner._engine_run import Engine
from horovod.runner._engine_task import Task, task_name
from horovod.runner._job import own_address_towards
from horovod.runner._joined_agent import JoinedAgent

_LOOK_SECONDS = 1.0  # between two looks at the cluster's workers
_PLUGIN = "horovod"


class Cluster(Engine):
    """The workers of a client's cluster. `run` belongs to one thread."""

    title = "Dask"

    def __init__(self, client: Any) -> None:
        self._client = client
        self._name = f"horovod-{uuid.uuid4().hex[:12]}"
        self._futures: dict[str, Any] = {}  # of the workers' tasks, by the workers' addresses
        self._attempts = 0
        self._cancelled = threading.Event()

    def workers(self) -> list[str]:
        """The addresses of the cluster's workers."""
        return list(self._client.scheduler_info(n_workers=-1)["workers"])

    def name_of_caller(self) -> str:
        """What workers call this machine: its address towards the scheduler."""
        _, _, host_port = self._client.scheduler.address.rpartition("://")
        return own_address_towards(host_port.rpartition(":")[0].strip("[]"))

    def run(self, task: Task, count: int, at_once: bool) -> None:
        """Runs `count` tasks; those of an elastic job come and go with the workers."""
        self._client.register_plugin(AgentsOfWorker(), name=_PLUGIN)
        try:
            while not self._cancelled.is_set():
                self._look(task, count)
                if self._futures and all(future.done() for future in self._futures.values()):
                    break
                self._wait()
            for future in self._futures.values():
                if future.status == "error":
                    future.result()
        finally:
            self._futures.clear()  # which frees them on the cluster

    def _wait(self) -> None:
        """For a task to end, or the next look."""
        running = [future for future in self._futures.values() if not future.done()]
        if not running:
            self._cancelled.wait(_LOOK_SECONDS)
            return
        with contextlib.suppress(TimeoutError):
            distributed.wait(running, timeout=_LOOK_SECONDS, return_when="FIRST_COMPLETED")

    def _look(self, task: Task, count: int) -> None:
        """Starts tasks on workers that have none, until there are `count`; forgets those whose workers have gone. Where one has
        failed, the next look starts another: until then the job may turn out to be over."""
        there = self.workers()
        if task.elastic:
            for address, future in list(self._futures.items()):
                if address not in there or future.status == "error":
                    future.cancel()
                    del self._futures[address]
                    there = [other for other in there if other != address]
        for address in there:
            if len(self._futures) < count and address not in self._futures and (task.elastic or self._attempts < count):
                self._futures[address] = self._submit(task, address)

    def _submit(self, task: Task, address: str) -> Any:
        name = task_name(self._attempts, 0 if task.elastic else None)
        self._attempts += 1
        return self._client.submit(
            _run_task,
            task,
            name,
            key=f"{self._name}-{name}",
            workers=[address],
            allow_other_workers=False,
            pure=False,
            retries=0,
        )

    def cancel(self) -> None:
        """Ends `run`. Tasks end by themselves when their job has ended."""
        self._cancelled.set()
        self._client.cancel(list(self._futures.values()), force=True)


class AgentsOfWorker(distributed.WorkerPlugin):  # type: ignore[misc]  # distributed has no types for it
    """Drains the agents of a worker that is being closed: of an elastic job no step is lost."""

    def setup(self, worker: Any) -> None:
        """Called on the worker."""

    async def teardown(self, worker: Any) -> None:
        """Called on the worker, on its event loop, which goes on meanwhile."""
        import asyncio

        for agent in list(_agents):
            agent.drain()
            await asyncio.to_thread(agent.wait)


_agents: list[JoinedAgent] = []  # of this process, a worker


def _run_task(task: Task, name: str) -> int:
    """A job's task, on a worker."""
    started: Optional[JoinedAgent] = None

    def remember(agent: JoinedAgent) -> None:
        nonlocal started
        started = agent
        _agents.append(agent)

    distributed.secede()  # so that the worker's threads are free for others
    try:
        return task.run(name, "-", {}, remember)
    finally:
        if started is not None:
            _agents.remove(started)
