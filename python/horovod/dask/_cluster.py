"""A Dask cluster as the engine of a job, with at most one task of the job on each worker."""

import collections
import contextlib
import itertools
import sys
import threading
import uuid
import weakref
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Optional

import distributed

from horovod.runner._addresses import own_address_towards, split_host_port
from horovod.runner._engine_run import Engine
from horovod.runner._engine_task import Task, task_name
from horovod.runner._joined_agent import JoinedAgent

_LOOK_SECONDS = 1.0  # from one examination of the cluster's workers to the next
_PLUGIN = "horovod"


@dataclass(frozen=True)
class _Place:
    """A task on a worker."""

    index: int  # of the task
    future: Any


class Cluster(Engine):
    """The workers of a client's cluster. Workers that are about to leave drain their agents themselves: :class:`AgentsOfWorker`."""

    title = "Dask"

    def __init__(self, client: Any) -> None:
        self._client = client
        self._name = f"horovod-{uuid.uuid4().hex[:12]}"
        self._places: dict[str, _Place] = {}  # by the workers' addresses; of the thread of `run`
        self._attempts: collections.Counter[int] = collections.Counter()  # by the tasks' indexes
        self._cancelled = threading.Event()

    def workers(self) -> list[str]:
        """Returns the addresses of the cluster's workers."""
        # Not the client's scheduler_info(), which its own refreshing changes at any time, to the first five.
        return list(self._client.sync(self._client.scheduler.identity, n_workers=-1)["workers"])

    def name_of_caller(self) -> str:
        """Returns this machine's address towards the scheduler."""
        protocol, _, host_port = self._client.scheduler.address.rpartition("://")
        if protocol == "inproc":  # all of the cluster is in this process
            return "127.0.0.1"
        return own_address_towards(split_host_port(host_port)[0])

    def room(self) -> str:
        count = len(self.workers())
        return f"the cluster has {count} worker{'s'[: count != 1]}, each of which runs one process, however many threads it has"

    def run(self, task: Task, count: int, at_once: bool) -> None:
        """Runs at most one task on each worker. The tasks of an elastic job follow the workers."""
        self._client.register_plugin(AgentsOfWorker(), name=_PLUGIN)
        try:
            while not self._cancelled.is_set():
                self._look(task, count)
                if self._places and all(place.future.done() for place in self._places.values()):
                    break
                self._wait()
            for place in self._places.values():
                if place.future.status == "error":
                    place.future.result()  # raises the task's exception
        finally:
            self._places.clear()  # the cluster drops tasks without a reference

    def _wait(self) -> None:
        """Waits for the end of a task, or until the cluster is examined again."""
        running = [place.future for place in self._places.values() if not place.future.done()]
        if not running:
            self._cancelled.wait(_LOOK_SECONDS)
            return
        # distributed's is asyncio's: before Python 3.11 another class than the builtin one.
        with contextlib.suppress(TimeoutError, distributed.TimeoutError):
            distributed.wait(running, timeout=_LOOK_SECONDS, return_when="FIRST_COMPLETED")

    def _look(self, task: Task, count: int) -> None:
        """Starts tasks on workers without one, until there are `count`, and forgets those whose workers are gone. After a failure, only
        the next call starts another task, since the job may have ended in between.
        """
        workers = self.workers()
        failed = self._forget_lost(workers) if task.elastic else set()
        for address in workers:
            if len(self._places) < count and address not in self._places and address not in failed:
                self._places[address] = self._submit(task, address)

    def _forget_lost(self, workers: Collection[str]) -> set[str]:
        """Forgets the tasks that an elastic job has lost; returns their workers."""
        lost = {
            address
            for address, place in self._places.items()
            if address not in workers or place.future.status == "error"
        }
        for address in lost:
            self._places.pop(address).future.cancel()
        return lost

    def _submit(self, task: Task, address: str) -> _Place:
        used = {place.index for place in self._places.values()}
        index = next(free for free in itertools.count() if free not in used)
        name = task_name(index, self._attempts[index] if task.elastic else None)
        self._attempts[index] += 1
        future = self._client.submit(
            _run_task,
            task,
            name,
            key=f"{self._name}-{name}",
            workers=[address],
            allow_other_workers=False,
            pure=False,
            retries=0,
        )
        return _Place(index, future)

    def cancel(self) -> None:
        self._cancelled.set()


class AgentsOfWorker(distributed.WorkerPlugin):  # type: ignore[misc]  # distributed has no types for it
    """A plugin that drains the agents of a worker that is being closed, so that an elastic job loses no step."""

    def setup(self, worker: Any) -> None:
        """Is called on the worker."""

    async def teardown(self, worker: Any) -> None:
        """Called on the worker, on its event loop, which is not blocked."""
        import asyncio

        leaving = [agent for address, agent in _agents if address == worker.address]
        for agent in leaving:
            agent.drain()
        for agent in leaving:
            await asyncio.to_thread(agent.wait)


class _Turn:
    """The turns of the tasks of one job on this worker. One runs at a time, even if the client has missed the worker once and
    therefore forgotten its task. If one is done, those that wait for their turn are done too.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.status: Optional[int] = None


# Several workers may be threads of one process (LocalCluster(processes=False)).
_agents: list[tuple[str, JoinedAgent]] = []  # with the address of the worker whose it is
_turns: weakref.WeakValueDictionary[tuple[str, str], _Turn] = weakref.WeakValueDictionary()  # by worker and job


def _run_task(task: Task, name: str) -> int:
    """Runs a job's task, on a worker."""
    worker = distributed.get_worker()
    started: Optional[tuple[str, JoinedAgent]] = None

    def remember(agent: JoinedAgent) -> None:
        nonlocal started
        started = (worker.address, agent)
        _agents.append(started)

    distributed.secede()  # so that the worker's threads are free for others
    turn = _turns.setdefault((worker.address, task.info.address), _Turn())
    with turn.lock:
        try:
            if turn.status is None:
                turn.status = task.run(name, None, {}, _sent_files(worker.local_directory), remember)
            return turn.status
        finally:
            if started is not None:
                _agents.remove(started)


def _sent_files(folder: str) -> list[str]:
    """Returns the entries of Python's path with files that the client has sent to a worker's folder, ``upload_file``."""
    return [path for path in sys.path if path.startswith(folder)]
