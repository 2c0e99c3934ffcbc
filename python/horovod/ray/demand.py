"""What an elastic job asks the cluster's autoscaler for."""

from typing import Any

import ray

_MOST = 64  # groups that wait at a time


class Demand:
    """Placement groups for one worker each that wait for room: an autoscaler adds nodes for them. For one thread.

    No worker is placed in them: a group that has got its room gives it up at the next call, for the worker that is started
    there. Unlike what ``ray.autoscaler.sdk.request_resources`` asks for, they are this job's alone, and end with its driver.

    Args:
      resources: of a worker.
    """

    def __init__(self, resources: dict[str, float]) -> None:
        self._resources = resources
        self._groups: list[Any] = []

    def ask(self, workers: int) -> None:
        """Asks for room for so many more workers; 0 or less: for none."""
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
