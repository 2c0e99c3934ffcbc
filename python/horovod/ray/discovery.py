"""The nodes of a Ray cluster as hosts with slots."""

from typing import Any

import ray

from horovod.runner.elastic.discovery import HostDiscovery


def draining_nodes() -> set[str]:
    """The ids of the nodes that are about to leave the cluster, where this Ray knows them."""
    state = getattr(ray._private, "state", None)
    nodes = getattr(getattr(state, "state", None), "get_draining_nodes", None)
    return set(nodes()) if nodes else set()


class RayHostDiscovery(HostDiscovery):
    """All nodes that live and stay, with as many slots as their resources allow; it takes the whole cluster."""

    def __init__(self, use_gpu: bool = False, cpus_per_worker: float = 1, gpus_per_worker: float = 1) -> None:
        self.use_gpu = use_gpu
        self.cpus_per_worker = cpus_per_worker
        self.gpus_per_worker = gpus_per_worker

    def find_available_hosts_and_slots(self) -> dict[str, int]:
        """The addresses of the nodes, each with its slots; none has 0."""
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
