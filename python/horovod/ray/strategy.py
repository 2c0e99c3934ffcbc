"""The placement of the workers of a job of fixed size: strategies for placement groups."""

from collections import defaultdict
from typing import Any, Optional

import ray
from ray.util.placement_group import get_current_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from horovod.ray.adapter import resources_of
from horovod.ray.utils import map_blocking
from horovod.ray.worker import BaseHorovodWorker


def create_placement_group(
    resources_per_bundle: dict[str, float], num_bundles: int, pg_timeout: float, pg_strategy: str
) -> tuple[Any, list[dict[str, float]]]:
    """Returns a placement group of equal bundles that is ready, and these bundles. Raises TimeoutError, with the available and the
    requested resources, if it isn't ready within `pg_timeout` seconds; the group is removed then.
    """
    bundles = [dict(resources_per_bundle) for _ in range(num_bundles)]
    group = ray.util.placement_group(bundles, strategy=pg_strategy)
    ready, _ = ray.wait([group.ready()], timeout=pg_timeout)
    if not ready:
        ray.util.remove_placement_group(group)
        raise TimeoutError(
            f"Ray made no placement group of {bundles}, {pg_strategy} within {pg_timeout:g} s: the cluster has "
            f"{ray.available_resources()} free. Ask for less, add nodes, or use an autoscaling cluster"
        )
    return group, bundles


class BaseStrategy:
    """Makes the actors of a job. Only one thread may use it."""

    def __init__(
        self, *, settings: Any, use_gpu: bool, cpus_per_worker: float, gpus_per_worker: Optional[float]
    ) -> None:
        self.settings = settings
        self.use_gpu = use_gpu
        self.cpus_per_worker = cpus_per_worker
        self.gpus_per_worker = (gpus_per_worker or 1) if use_gpu else 0
        self.placement_group: Any = None
        self.workers: list[Any] = []
        self._created_placement_group = False

    @property
    def num_workers(self) -> int:
        """The number of workers that it makes."""
        raise NotImplementedError

    def create_workers(self) -> list[Any]:
        """Places and starts the actors. Raises TimeoutError if there is no room."""
        raise NotImplementedError

    def shutdown(self) -> None:
        """Ends the actors, and the placement group that was made for them."""
        for worker in self.workers:
            ray.kill(worker)
        self.workers = []
        if self._created_placement_group:
            ray.util.remove_placement_group(self.placement_group)
            self._created_placement_group = False
        self.placement_group = None

    def _resources(self, workers: int = 1) -> dict[str, float]:
        return resources_of(self.cpus_per_worker * workers, self.gpus_per_worker * workers)

    def _create_group(self, resources: dict[str, float], count: int, kind: str) -> None:
        timeout = self.settings.placement_group_timeout_s
        self.placement_group, _ = create_placement_group(resources, count, timeout, kind)
        self._created_placement_group = True

    def _start_worker(self, bundle: int) -> None:
        options = {
            "num_cpus": self.cpus_per_worker,
            "num_gpus": self.gpus_per_worker,
            "max_restarts": 0,
            # What a worker starts goes where there is room, also where what the caller starts stays in its group.
            "scheduling_strategy": PlacementGroupSchedulingStrategy(
                self.placement_group,
                placement_group_bundle_index=bundle,
                placement_group_capture_child_tasks=False,
            ),
        }
        self.workers.append(ray.remote(BaseHorovodWorker).options(**options).remote())

    def _share_gpus(self) -> None:
        """Makes each worker see the GPUs of all workers of its node: its local rank says which one is its own."""
        if not self.use_gpu:
            return
        nodes = map_blocking(lambda worker: worker.node_id.remote(), self.workers)
        gpus = map_blocking(lambda worker: worker.get_gpu_ids.remote(), self.workers)
        of_node: dict[str, list[str]] = defaultdict(list)
        for node, ids in zip(nodes, gpus):
            of_node[node] += [str(one) for one in ids]
        visible = {
            worker: {"CUDA_VISIBLE_DEVICES": ",".join(of_node[node])} for worker, node in zip(self.workers, nodes)
        }
        map_blocking(lambda worker: worker.update_env_vars.remote(visible[worker]), self.workers)


class ColocatedStrategy(BaseStrategy):
    """The same number of workers on each of some nodes."""

    def __init__(self, *, num_hosts: int, num_workers_per_host: int, **resources: Any) -> None:
        super().__init__(**resources)
        self.num_hosts = num_hosts
        self.num_workers_per_host = num_workers_per_host

    @property
    def num_workers(self) -> int:
        return self.num_hosts * self.num_workers_per_host

    def create_workers(self) -> list[Any]:
        self._create_group(self._resources(self.num_workers_per_host), self.num_hosts, "STRICT_SPREAD")
        for bundle in range(self.num_hosts):
            for _ in range(self.num_workers_per_host):
                self._start_worker(bundle)
        self._share_gpus()
        return self.workers


class PGStrategy(BaseStrategy):
    """Workers close to one another, as many on a node as fit; in the given placement group, or else in the one in which the caller
    runs, or else in one that is made for them.
    """

    def __init__(
        self,
        *,
        num_workers: int,
        placement_group: Any = None,
        force_create_placement_group: bool = False,
        **resources: Any,
    ) -> None:
        super().__init__(**resources)
        self._num_workers = num_workers
        if not force_create_placement_group:
            self.placement_group = placement_group or get_current_placement_group()

    @property
    def num_workers(self) -> int:
        return self._num_workers

    def create_workers(self) -> list[Any]:
        if self.placement_group is None:
            self._create_group(self._resources(), self.num_workers, "PACK")
        for index in range(self.num_workers):
            self._start_worker(index if self._created_placement_group else -1)
        self._share_gpus()
        return self.workers
