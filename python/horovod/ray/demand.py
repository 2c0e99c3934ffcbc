"""The resources that an elastic job requests from the cluster's autoscaler."""

from typing import Any

import ray

_MOST = 64  # groups that wait at a time


class Demand:
    """Placement groups that wait for room, for one worker each: an autoscaler adds nodes for them. Only one thread may use it.

    No worker is placed in them. A group that has got its room releases it at the next call, for the worker that is started there.
    Unlike requests through ``ray.autoscaler.sdk.request_resources``, the groups belong to this job only, and end with its driver.

    Args:
      resources: the resources of a worker.
    """

    def __init__(self, resources: dict[str, float]) -> None:
        self._resources = resources
        self._groups: list[Any] = []

    def ask(self, workers: int) -> None:
        """Requests room for that many more workers; 0 or less: none."""
        waiting = [group for group in self._groups if _waits(group)]
        wanted = min(max(workers, 0), _MOST)
        for group in self._groups:
            if group not in waiting[:wanted]:
                ray.util.remove_placement_group(group)
        self._groups = waiting[:wanted]
        while len(self._groups) < wanted:
            self._groups.append(ray.util.placement_group([self._resources]))


def _waits(group: Any) -> bool:
    return bool(ray.util.placement_group_table(group)["state"] != "CREATED")
