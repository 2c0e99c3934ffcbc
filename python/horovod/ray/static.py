"""Jobs of fixed size: actors that are workers from ``start`` to ``shutdown``."""

import contextlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional

import ray
from ray.util.placement_group import get_current_placement_group

from horovod.ray.adapter import Adapter, BaseParams, Callbacks, bound
from horovod.ray.failures import WorkerError, raise_cause
from horovod.ray.job import start_job
from horovod.ray.logging_queue import CallbackQueue
from horovod.ray.parcel import Executable, executable_parcel, function_parcel
from horovod.ray.settings import interfaces
from horovod.ray.strategy import BaseStrategy, ColocatedStrategy, PGStrategy
from horovod.ray.utils import map_blocking
from horovod.ray.worker import Membership
from horovod.runner._job import Job, Limits

# Seconds for the other workers: to return, too, after one has raised; to come out of what they can't end by
# themselves, once the job was ended for them; to leave.
_ALL_RETURN = 2.0
_ALL_END = 30.0


@dataclass
class StaticParams(BaseParams):
    """The arguments of :class:`horovod.ray.RayExecutor` for jobs of fixed size."""

    num_workers: Optional[int] = None
    num_hosts: Optional[int] = None
    num_workers_per_host: Optional[int] = 1
    use_current_placement_group: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_workers is not None and self.num_hosts is not None:
            raise ValueError("Both `num_workers` and `num_hosts` provided: give one of them.")
        if self.num_workers is None and self.num_hosts is None:
            raise ValueError("How many workers? One of `num_workers`, `num_hosts` and `min_workers` must be given.")
        for name in ("num_workers", "num_hosts", "num_workers_per_host"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise ValueError(f"`{name}` must be 1 or more: Got {number}.")

    def strategy(self, settings: Any) -> BaseStrategy:
        """Returns the strategy by which the workers are placed."""
        resources = dict(
            settings=settings,
            use_gpu=self.use_gpu,
            cpus_per_worker=self.cpus_per_worker,
            gpus_per_worker=self.gpus_per_worker,
        )
        inherits = self.use_current_placement_group and get_current_placement_group() is not None
        per_host = self.num_workers_per_host or 1
        if self.num_workers is None and not inherits:
            assert self.num_hosts is not None
            return ColocatedStrategy(num_hosts=self.num_hosts, num_workers_per_host=per_host, **resources)
        return PGStrategy(
            num_workers=self.num_workers or per_host * (self.num_hosts or 1),
            force_create_placement_group=not inherits,
            **resources,
        )


def in_order_of_ranks(nodes: Sequence[str], first: str) -> list[int]:
    """Returns the numbers of the workers, whose nodes are given, in the order of their ranks: node by node, in the given order, but
    node `first` before the others.
    """
    place = {node: index for index, node in reversed(list(enumerate(nodes)))}
    return sorted(range(len(nodes)), key=lambda index: (nodes[index] != first, place[nodes[index]]))


class StaticAdapter(Adapter):
    """Actors in a placement group."""

    def __init__(self, settings: Any, params: StaticParams) -> None:
        self.settings = settings
        self.params = params
        self.strategy: Optional[BaseStrategy] = None
        self.workers: list[Any] = []  # in the order of ranks
        self._job: Optional[Job] = None
        self._why_ended = ""  # if this object has ended it

    def start(self, executable: Executable, environment: dict[str, str]) -> None:
        if self.strategy is not None:
            raise RuntimeError("The executor has been started already; shutdown() ends it.")
        parcel = executable_parcel(executable)
        self.strategy = self.params.strategy(self.settings)
        try:
            workers = self.strategy.create_workers()
            self._start_job(workers, environment)
            self._collect([worker.make_executable.remote(parcel) for worker in self.workers])
        except BaseException:
            self.shutdown()
            raise

    def _start_job(self, workers: list[Any], environment: dict[str, str]) -> None:
        nodes = map_blocking(lambda worker: worker.node_id.remote(), workers)
        names = map_blocking(lambda worker: worker.hostname.remote(), workers)
        order = in_order_of_ranks(nodes, ray.get_runtime_context().get_node_id())
        self.workers = [workers[index] for index in order]
        hosts = [f"{names[index]}/{rank}" for rank, index in enumerate(order)]
        timeout = self.settings.timeout_s
        limits = Limits(len(workers), hosts=hosts, start_timeout=timeout)
        self._job, self._why_ended = start_job(limits, self.settings), ""
        joins = []
        for worker, host, index in zip(self.workers, hosts, order):
            # All GPUs of a node are seen by its workers, and local ranks count them.
            machine = nodes[index] if self.params.use_gpu else None
            info = self._job.join_info
            membership = Membership(info, host, machine, interfaces(self.settings), timeout, environment)
            joins.append(worker.join.remote(membership))
        self._collect(joins)

    def execute(self, fn: Callable[[Any], Any], callbacks: Callbacks = None) -> list[Any]:
        with self._callbacks(callbacks):
            return self._collect(self._submit(fn))

    def run_remote(
        self, fn: Callable[..., Any], args: Optional[Sequence[Any]] = None, kwargs: Optional[dict[str, Any]] = None
    ) -> list[Any]:
        references = self._submit(bound(fn, args, kwargs))
        # Nobody may ever ask for them, but a worker that fails must not leave the others waiting.
        watcher = threading.Thread(target=self._wait_for_all, args=(references,), name="horovod run", daemon=True)
        watcher.start()
        return references

    def execute_single(self, fn: Callable[[Any], Any]) -> Any:
        return self._collect([self._live_workers()[0].execute_parcel.remote(function_parcel(fn))])[0]

    def shutdown(self) -> None:
        job, self._job = self._job, None
        if job is not None:
            if job.wait(0) is None:
                ray.wait(
                    [worker.leave.remote() for worker in self.workers], num_returns=len(self.workers), timeout=_ALL_END
                )
            job.stop()
        self.workers = []
        if self.strategy is not None:
            self.strategy.shutdown()
            self.strategy = None

    def _live_workers(self) -> list[Any]:
        if self._job is None:
            raise RuntimeError("The executor has not been started; start() does that.")
        if self._job.wait(0) is not None:
            raise RuntimeError(
                f"The job of these workers has ended: {self._why_ended or self._job.last_line()}. shutdown() and start() "
                "begin a new one."
            )
        return self.workers

    def _submit(self, fn: Callable[[Any], Any]) -> list[Any]:
        workers, work = self._live_workers(), function_parcel(fn)
        return [worker.execute_parcel.remote(work) for worker in workers]

    @contextlib.contextmanager
    def _callbacks(self, callbacks: Callbacks) -> Any:
        if not callbacks:
            yield
            return
        with CallbackQueue(callbacks) as queue:
            map_blocking(lambda worker: worker.set_queue.remote(queue.queue), self._live_workers())
            try:
                yield
            finally:
                for worker in self.workers:
                    worker.set_queue.remote(None)

    def _collect(self, references: list[Any]) -> list[Any]:
        """Returns the values; raises the cause if there are errors."""
        try:
            self._wait_for_all(references)
        except KeyboardInterrupt:
            self._end_job("run() was interrupted")  # or the functions would go on, and shutdown() wait for them
            raise
        values, errors = [], []
        done, _ = ray.wait(references, num_returns=len(references), timeout=0)
        for rank, reference in enumerate(references):
            try:
                values.append(ray.get(reference) if reference in done else None)
            except Exception as error:
                errors.append(WorkerError(f"rank {rank}", error))
        if errors:
            raise_cause(errors, self._verdict)
        return values

    def _wait_for_all(self, references: list[Any]) -> None:
        """Waits until all workers are done. If one has failed, those that wait for it are made to fail too."""
        waiting = list(references)
        while waiting:
            done, waiting = ray.wait(waiting, num_returns=1)
            if _has_failed(done[0]):
                _, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=_ALL_RETURN) if waiting else ([], [])
                if waiting:
                    self._end_job("a worker's function has failed")
                    ray.wait(waiting, num_returns=len(waiting), timeout=_ALL_END)
                return

    def _end_job(self, why: str) -> None:
        if self._job is not None:
            self._why_ended = why
            self._job.stop()

    def _verdict(self) -> str:
        job = self._job
        return job.last_line() if job is not None and job.wait(_ALL_END) is not None else ""


def _has_failed(reference: Any) -> bool:
    try:
        ray.get(reference)
    except Exception:
        return True
    return False
