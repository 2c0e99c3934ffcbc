"""Elastic jobs: actors that are started and ended as nodes join and leave the cluster."""

import contextlib
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable, NamedTuple, Optional

import ray

from horovod.ray.adapter import Adapter, BaseParams, Callbacks
from horovod.ray.demand import Demand
from horovod.ray.discovery import ChangingDiscovery as TestDiscovery  # noqa: F401  # a name of Horovod's
from horovod.ray.discovery import RayHostDiscovery as RayHostDiscovery
from horovod.ray.discovery import check_hosts
from horovod.ray.failures import first_words, is_consequence, refusal
from horovod.ray.job import logger, start_job
from horovod.ray.logging_queue import CallbackQueue
from horovod.ray.parcel import Executable, Parcel, executable_parcel, function_parcel
from horovod.ray.roster import Roster
from horovod.ray.settings import interfaces
from horovod.ray.worker import BaseHorovodWorker, Ended, Membership
from horovod.runner._engine_options import is_number
from horovod.runner._job import Job, Limits

_DISCOVERY_SECONDS = 1.0  # from one examination of the cluster to the next
_LEAVE_SECONDS = 30.0  # for workers to return, once the job has ended
_VERDICT_SECONDS = 1.0  # for the job to end after it has taken no more workers
_DEFAULT_TIMEOUT = 600  # the daemon's default too, unless HOROVOD_ELASTIC_TIMEOUT is set


@dataclass
class ElasticParams(BaseParams):
    """The arguments of :class:`horovod.ray.RayExecutor` for elastic jobs."""

    min_workers: int = 1
    max_workers: Optional[int] = None
    reset_limit: Optional[int] = None
    cooldown_range: Optional[Sequence[int]] = None
    elastic_timeout: float = _DEFAULT_TIMEOUT
    override_discovery: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.min_workers < 1:
            raise ValueError(f"`min_workers` must be 1 or more: Got {self.min_workers}.")
        if self.max_workers is not None and self.max_workers < self.min_workers:
            raise ValueError(f"`max_workers` ({self.max_workers}) is less than `min_workers` ({self.min_workers}).")
        if self.cooldown_range is not None and not _is_range(self.cooldown_range):
            raise ValueError(f"`cooldown_range` must be (MIN, MAX) in seconds: Got {self.cooldown_range!r}.")

    def limits(self) -> Limits:
        """Returns the options of the job's daemon."""
        timeout = None if self.elastic_timeout == _DEFAULT_TIMEOUT else self.elastic_timeout
        return Limits(
            self.min_workers,
            min_num_proc=self.min_workers,
            max_num_proc=self.max_workers,
            start_timeout=self.elastic_timeout,
            elastic_timeout=timeout,
            reset_limit=self.reset_limit,
        )


def _is_range(value: Any) -> bool:
    return isinstance(value, Sequence) and len(value) == 2 and all(map(is_number, value)) and 0 < value[0] <= value[1]


class ElasticAdapter(Adapter):
    """An adapter that makes each run a separate job, with separate actors."""

    def __init__(self, settings: Any, params: ElasticParams) -> None:
        self.settings = settings
        self.params = params
        if params.override_discovery:
            settings.discovery = RayHostDiscovery(
                params.use_gpu, params.cpus_per_worker, params.gpus_per_worker or int(params.use_gpu)
            )
        if not callable(getattr(settings.discovery, "find_available_hosts_and_slots", None)):
            raise ValueError(
                "override_discovery=False needs settings.discovery: an object with find_available_hosts_and_slots(): "
                f"Got {settings.discovery!r}"
            )
        self._executable: Any = None
        self._environment: dict[str, str] = {}

    def start(self, executable: Executable, environment: dict[str, str]) -> None:
        self._executable = executable_parcel(executable)
        self._environment = environment

    def execute(self, fn: Callable[[Any], Any], callbacks: Callbacks = None) -> list[Any]:
        work = self._executable, function_parcel(fn)
        with contextlib.ExitStack() as stack:
            queue = stack.enter_context(CallbackQueue(callbacks)).queue if callbacks else None
            job = stack.enter_context(start_job(self.params.limits(), self.settings))
            run = _Run(job, self.settings, self.params, work, self._environment, queue)
            stack.callback(run.close)
            return run.results()

    def run_remote(
        self, fn: Callable[..., Any], args: Optional[Sequence[Any]] = None, kwargs: Optional[dict[str, Any]] = None
    ) -> list[Any]:
        raise NotImplementedError(
            "the workers of an elastic run come and go, so that it has no ObjectRefs to return: use run()"
        )

    def execute_single(self, fn: Callable[[Any], Any]) -> Any:
        raise NotImplementedError("Elastic mode does not support execute_single: use execute()")

    def shutdown(self) -> None:
        pass  # a run leaves nothing behind


class _Worker(NamedTuple):
    name: str
    host: str
    actor: Any
    placed: Any  # a reference, which is there once the actor runs


class _Run:
    """One job: the loop that starts actors and collects their results."""

    def __init__(
        self,
        job: Job,
        settings: Any,
        params: ElasticParams,
        work: tuple[Parcel, Parcel],
        environment: dict[str, str],
        queue: Any,
    ) -> None:
        self._job, self._settings, self._params, self._work = job, settings, params, work
        self._environment, self._queue = environment, queue
        cooldown = tuple(map(float, params.cooldown_range)) if params.cooldown_range else None
        self._roster = Roster(params.max_workers, cooldown)  # type: ignore[arg-type]
        self._demand = Demand(params.resources())
        self._numbers = itertools.count()
        self._workers: dict[Any, _Worker] = {}  # by the reference of their result
        self._draining: set[str] = set()
        self._hosts: dict[str, int] = {}
        self._results: dict[int, Ended] = {}  # by rank
        self._finishing = False  # a worker is done, so all will be
        self._failure: Optional[Exception] = None  # the last one that was not a mere consequence of another
        self._unread: Optional[Exception] = None  # the last one that matters only if no worker has a result
        self._refusal = ""  # of the last worker that failed
        self._has_worked = False  # a worker has taken part
        self._next_look = 0.0

    def results(self) -> list[Any]:
        """Runs the job to its end and returns the results. Raises RuntimeError with its verdict and the last failure."""
        status = None
        while status is None:
            self._look_at_the_cluster()
            self._take_results(_DISCOVERY_SECONDS)
            status = self._job.wait(_VERDICT_SECONDS if self._is_refused() else 0)
            if status is None and self._is_refused():
                raise RuntimeError(self._refusal)
        deadline = time.monotonic() + _LEAVE_SECONDS
        awaits = self._awaits_results if status == 0 else self._awaits_cause
        while awaits() and time.monotonic() < deadline:
            self._take_results(_DISCOVERY_SECONDS)
        if status != 0:
            self._raise()
        if not self._results:
            raise RuntimeError(
                f"no result came back from the workers: {self._unread or self._failure or 'all have ended'}"
            )
        return [self._results[rank].value for rank in sorted(self._results)]

    def _awaits_results(self) -> bool:
        # Workers that are not in the last world, or were never placed, do not return.
        size = max((ended.size for ended in self._results.values()), default=0)
        return bool(self._workers) and (size == 0 or len(self._results) < size)

    def _awaits_cause(self) -> bool:
        """Returns whether the exception that ended the job may still be on its way: the agent's report is often faster than Ray's."""
        if self._failure is not None and not is_consequence(self._failure):
            return False
        placed = [worker.placed for worker in self._workers.values()]
        return bool(placed and ray.wait(placed, num_returns=1, timeout=0)[0])

    def close(self) -> None:
        """Ends the actors."""
        self._demand.ask(0)
        for worker in self._workers.values():
            ray.kill(worker.actor)
        self._workers.clear()

    def _look_at_the_cluster(self) -> None:
        now = time.monotonic()
        if self._finishing or now < self._next_look:
            return
        self._next_look = now + _DISCOVERY_SECONDS
        try:
            found = self._settings.discovery.find_available_hosts_and_slots()
        except Exception as error:
            logger.warning("The hosts are not known now, and stay as they were: %s", first_words(error))
        else:
            check_hosts(found)
            self._hosts = dict(found)
        workers = {worker.name: worker.host for worker in self._workers.values() if worker.name not in self._draining}
        change = self._roster.plan(self._hosts, workers, now)
        for name in change.drain:
            self._draining.add(name)
            self._job.drain(name)
        for host in change.start:
            self._start_worker(host)
        if self._params.override_discovery:
            self._ask_for_room()

    def _ask_for_room(self) -> None:
        """Requests nodes from an autoscaler for the workers that are missing."""
        wanted = (self._params.max_workers or self._params.min_workers) - sum(self._hosts.values())
        starting = [worker.placed for worker in self._workers.values()]
        if starting and ray.wait(starting, num_returns=len(starting), timeout=0)[1]:
            wanted = 0  # they come first where there is room
        self._demand.ask(wanted)

    def _start_worker(self, host: str) -> None:
        name = f"{host}/{next(self._numbers)}"
        use_gpu = self._params.use_gpu
        options = {
            "num_cpus": self._params.cpus_per_worker,
            "num_gpus": self._params.gpus_per_worker if use_gpu else 0,
            "resources": {f"node:{host}": 0.001},
            "max_restarts": 0,
        }
        actor = ray.remote(BaseHorovodWorker).options(**options).remote()
        if self._queue is not None:
            actor.set_queue.remote(self._queue)
        placed = actor.node_id.remote()
        # It sees its own GPUs alone, and so is a machine for itself, with local rank 0.
        machine = name if use_gpu else None
        membership = Membership(self._job.join_info, name, machine, interfaces(self._settings), None, self._environment)
        self._workers[actor.take_part.remote(membership, *self._work)] = _Worker(name, host, actor, placed)

    def _take_results(self, patience: float) -> None:
        if not self._workers:
            self._job.wait(patience)
            return
        done, _ = ray.wait(list(self._workers), num_returns=1, timeout=patience)
        for reference in done:
            worker = self._workers.pop(reference)
            try:
                self._note_result(ray.get(reference))
            except Exception as error:
                self._note_failure(worker, error)
            ray.kill(worker.actor)

    def _note_result(self, ended: Optional[Ended]) -> None:
        self._has_worked = True
        if ended is not None:
            self._finishing = True
            self._results[ended.rank] = ended

    def _note_failure(self, worker: _Worker, error: Exception) -> None:
        if worker.name in self._draining or self._job.wait(0) == 0:
            self._unread = error
            return  # it was to go, or came too late
        logger.info("%s has failed: %s", worker.name, first_words(error))
        if self._failure is None or not is_consequence(error) or is_consequence(self._failure):
            self._failure = error
        self._refusal = refusal(error)
        if self._refusal:
            self._roster.note_refusal(worker.host, time.monotonic())
        else:
            self._has_worked = True
            self._roster.note_failure(worker.host, time.monotonic())

    def _is_refused(self) -> bool:
        """Returns whether no worker could take part, and others could not either."""
        return bool(self._refusal) and not self._workers and not self._has_worked

    def _raise(self) -> None:
        text = self._job.last_line()
        if self._failure is not None:
            text += f"\nThe last worker that failed said: {self._refusal or self._failure}"
        raise RuntimeError(text) from self._failure
