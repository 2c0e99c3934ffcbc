"""Ray Train with Horovod: the backend for its trainers::

    from ray.train import ScalingConfig
    from horovod.ray.train import HorovodTrainer

    HorovodTrainer(train, scaling_config=ScalingConfig(num_workers=4)).fit()

`train` calls ``hvd.init()``; its rank is Ray Train's world rank.
"""

import os
import socket
from dataclasses import dataclass
from typing import Any, Callable, Optional

import ray
from ray import train as ray_train
from ray.train.backend import Backend, BackendConfig

from horovod.ray.job import start_job
from horovod.ray.settings import Networks, interfaces
from horovod.ray.worker import Membership
from horovod.runner._adoption import Adoption
from horovod.runner._engine_options import check_function, check_networks, check_seconds, check_verbosity
from horovod.runner._job import Job, Limits

if getattr(ray_train, "is_v2_enabled", lambda: False)():
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
else:
    from ray.train.data_parallel_trainer import DataParallelTrainer

_LEAVE_SECONDS = 10.0  # for workers to leave the job


@dataclass
class HorovodConfig(BackendConfig):  # type: ignore[misc]
    """Makes the workers of a trainer the workers of a Horovod job of fixed size.

    Attributes:
      nics: the names of network interfaces, or networks, that workers may use; None: the way to the trainer.
      verbose: from 2 on, the daemon's messages go to stderr; below, to the logger ``horovod.ray``.
      timeout_s: the time in seconds for all workers to join.

    Raises:
      TypeError, ValueError: an attribute is invalid.
    """

    nics: Networks = None
    verbose: int = 1
    timeout_s: float = 300

    def __post_init__(self) -> None:
        check_networks(self.nics)
        check_verbosity(self.verbose)
        check_seconds(timeout_s=self.timeout_s)

    @property
    def backend_cls(self) -> type:
        """The class of the backend, for Ray Train."""
        return _HorovodBackend


class HorovodTrainer(DataParallelTrainer):  # type: ignore[misc]
    """A data-parallel trainer with this backend.

    Args:
      train_loop_per_worker: the function that each worker calls, with `train_loop_config` if it takes an argument.
      horovod_config: the configuration of the backend.
      arguments: further arguments of Ray's DataParallelTrainer: scaling_config, run_config, datasets, ...

    Raises:
      TypeError: an argument is invalid.
    """

    def __init__(
        self,
        train_loop_per_worker: Callable[..., Any],
        *,
        horovod_config: Optional[HorovodConfig] = None,
        **arguments: Any,
    ) -> None:
        check_function(train_loop_per_worker, "train_loop_per_worker")
        if not isinstance(horovod_config, (HorovodConfig, type(None))):
            raise TypeError(f"horovod_config must be a HorovodConfig: Got {horovod_config!r}")
        super().__init__(train_loop_per_worker, backend_config=horovod_config or HorovodConfig(), **arguments)


class _HorovodBackend(Backend):  # type: ignore[misc]
    """The backend. Ray Train calls its methods on one thread, for one group of workers after another."""

    share_cuda_visible_devices = True  # the local rank is the number of a worker's GPU

    def __init__(self) -> None:
        self._job: Optional[Job] = None

    def on_start(self, worker_group: Any, backend_config: HorovodConfig) -> None:
        """Starts the job of these workers; returns when the job has started."""
        self._stop()
        found = worker_group.execute(_node)
        hosts = [f"{name}/{rank}" for rank, (name, _, _) in enumerate(found)]
        timeout = backend_config.timeout_s
        self._job = start_job(Limits(len(hosts), hosts=hosts, start_timeout=timeout), backend_config)
        joins = []
        for rank, (_, node, has_gpu) in enumerate(found):
            nics = interfaces(backend_config)
            machine = node if has_gpu else None
            membership = Membership(self._job.join_info, hosts[rank], machine, nics, timeout, {})
            joins.append(worker_group.execute_single_async(rank, _join, membership))
        ray.get(joins)

    def on_shutdown(self, worker_group: Any, backend_config: HorovodConfig) -> None:
        """Ends the job."""
        if self._job is not None:
            references = worker_group.execute_async(_leave)
            ray.wait(references, num_returns=len(references), timeout=_LEAVE_SECONDS)
        self._stop()

    def _stop(self) -> None:
        if self._job is not None:
            self._job.stop()
            self._job = None


def _node() -> tuple[str, str, bool]:
    node: str = ray.get_runtime_context().get_node_id()
    return socket.gethostname(), node, bool(os.environ.get("CUDA_VISIBLE_DEVICES"))


_adoption: Optional[Adoption] = None  # of this worker


def _join(membership: Membership) -> None:
    global _adoption
    _adoption = Adoption(
        membership.info.address,
        membership.info.credentials,
        host=membership.host,
        machine=membership.machine,
        on_stop=lambda seconds: None,  # Ray Train ends the process, and the agent does if it does not
        network_interfaces=membership.interfaces,
    )
    _adoption.wait_for_start(membership.timeout)


def _leave() -> None:
    if _adoption is not None:
        _adoption.exit(0)
