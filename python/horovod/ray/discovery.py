"""The nodes of a Ray cluster as hosts with slots."""

import random
import time
from collections.abc import Mapping
from typing import Any, Optional

import ray

from horovod.runner._engine_options import check_amounts, check_counts, check_flags
from horovod.runner.elastic.discovery import HostDiscovery


def check_hosts(found: Any) -> None:
    """Raises TypeError if `found`, the result of a discovery, does not have a number of slots for each host."""
    if not isinstance(found, Mapping):
        raise TypeError(f"find_available_hosts_and_slots() must return a dict of slots by host: Got {found!r}")
    for host, slots in found.items():
        if not isinstance(host, str) or not isinstance(slots, int):
            raise TypeError(
                f"find_available_hosts_and_slots(): {host!r}: {slots!r} is not a host with a number of slots"
            )


def draining_nodes() -> set[str]:
    """Returns the ids of the nodes that are about to leave the cluster, if this version of Ray provides them."""
    state = getattr(ray._private, "state", None)
    nodes = getattr(getattr(state, "state", None), "get_draining_nodes", None)
    return set(nodes()) if nodes else set()


class RayHostDiscovery(HostDiscovery):
    """All nodes that are alive and stay, with as many slots as their resources allow. It uses the whole cluster.

    Args:
      use_gpu: whether workers need GPUs.
      cpus_per_worker: the number of CPUs of each worker.
      gpus_per_worker: the number of GPUs of each worker.
    """

    def __init__(self, use_gpu: bool = False, cpus_per_worker: float = 1, gpus_per_worker: float = 1) -> None:
        check_flags(use_gpu=use_gpu)
        check_amounts(cpus_per_worker=cpus_per_worker, gpus_per_worker=gpus_per_worker)
        if use_gpu and not gpus_per_worker:
            raise ValueError(f"gpus_per_worker is {gpus_per_worker}: it must be more than 0 if use_gpu is True")
        self.use_gpu = use_gpu
        self.cpus_per_worker = cpus_per_worker
        self.gpus_per_worker = gpus_per_worker

    def find_available_hosts_and_slots(self) -> dict[str, int]:
        """Returns the addresses of the nodes, each with its slots; nodes without slots are left out."""
        hosts: dict[str, int] = {}
        nodes = list(ray.nodes())
        leaving = draining_nodes() if any("NodeID" in node for node in nodes) else set()
        for node in nodes:
            slots = self._slots(node["Resources"])
            if node["alive"] and slots and node.get("NodeID") not in leaving:
                address = node["NodeManagerAddress"]
                hosts[address] = hosts.get(address, 0) + slots
        return hosts

    def _slots(self, resources: dict[str, Any]) -> int:
        slots = []
        if self.cpus_per_worker:
            slots.append(resources.get("CPU", 0) // self.cpus_per_worker)
        if self.use_gpu:
            slots.append(resources.get("GPU", 0) // self.gpus_per_worker)
        return int(min(slots, default=1))


class ChangingDiscovery(RayHostDiscovery):
    """Nodes that seem to come and go, for tests of a script. Every `change_frequency_s` seconds one node may be hidden, or shown
    again, so that between `min_hosts` and `max_hosts` are shown, if there are so many.

    Args:
      min_hosts: the minimum number of nodes that are shown.
      max_hosts: the maximum number of nodes that are shown.
      change_frequency_s: the time in seconds from one change to the next.
      use_gpu, cpus_per_worker, gpus_per_worker: as for :class:`RayHostDiscovery`.
      verbose: whether it prints the nodes.

    Raises:
      ValueError: the last argument, which Horovod has too, is False: nodes can't be ended.
    """

    def __init__(
        self,
        min_hosts: int,
        max_hosts: int,
        change_frequency_s: float,
        use_gpu: bool = False,
        cpus_per_worker: float = 1,
        gpus_per_worker: float = 1,
        verbose: bool = True,
        _graceful: bool = True,
    ) -> None:
        super().__init__(use_gpu, cpus_per_worker, gpus_per_worker)
        check_counts(min_hosts=min_hosts, max_hosts=max_hosts)
        check_amounts(change_frequency_s=change_frequency_s)
        check_flags(verbose=verbose, _graceful=_graceful)
        if not _graceful:
            raise ValueError(
                "_graceful=False: nodes are not ended by this version of Horovod; `ray drain-node` does that"
            )
        self._least, self._most, self._seconds = min_hosts, max_hosts, change_frequency_s
        self._verbose = verbose
        self._hidden: set[str] = set()
        self._changed_at: Optional[float] = None

    def find_available_hosts_and_slots(self) -> dict[str, int]:
        hosts = super().find_available_hosts_and_slots()
        now = time.monotonic()
        if self._changed_at is None:
            self._changed_at = now
        elif now - self._changed_at >= self._seconds:
            self._changed_at = now
            self._change(sorted(hosts))
        shown = {host: slots for host, slots in hosts.items() if host not in self._hidden}
        if self._verbose:
            print(f"{len(shown)} of {len(hosts)} hosts: {shown}", flush=True)
        return shown

    def _change(self, hosts: list[str]) -> None:
        hidden = [host for host in hosts if host in self._hidden]
        shown = [host for host in hosts if host not in self._hidden]
        adds = len(shown) <= self._least or (len(shown) < self._most and random.random() < 0.5)
        if adds and hidden:
            self._hidden.remove(random.choice(hidden))
        elif not adds:
            self._hidden.add(random.choice(shown))
