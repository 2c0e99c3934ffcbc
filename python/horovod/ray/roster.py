"""The policy that decides on which hosts an elastic job has workers."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple, Optional

_MEMORY = 600.0  # seconds for which a failure counts
_MOST_DOUBLINGS = 100  # of a pause: more would overflow a float
_LONGEST = 30.0  # seconds of a pause, if nothing else is said


class Change(NamedTuple):
    """The workers to be started and ended now."""

    start: list[str]  # the host of each worker to be started
    drain: list[str]  # the names of the workers that are to leave


class Roster:
    """A pure policy: no thread, clock or actor. Times are in seconds of any clock.

    Args:
      most: the maximum number of workers; None: as many as there are slots.
      cooldown: how long a host gets no new worker after a failure there: the times at first, and at most. None: no pause after
        the first failure, then 1 s, and twice as long after each further one, up to 30 s.
    """

    def __init__(self, most: Optional[int] = None, cooldown: Optional[tuple[float, float]] = None) -> None:
        self._most = most
        self._cooldown = cooldown
        self._failures: dict[str, list[float]] = {}
        self._refusals: dict[str, float] = {}

    def note_failure(self, host: str, now: float) -> None:
        """Records that a worker on `host` has failed."""
        recent = [time for time in self._failures.get(host, []) if now - time < _MEMORY]
        self._failures[host] = [*recent, now]

    def note_refusal(self, host: str, now: float) -> None:
        """Records that a worker on `host` could not take part, and that others could not either: the pause is the longest at once."""
        self._refusals[host] = now

    def plan(self, hosts: Mapping[str, int], workers: Mapping[str, str], now: float) -> Change:
        """Returns the changes for these `hosts` with their numbers of slots, and these `workers` with their hosts, oldest first."""
        drain, used = [], Counter[str]()
        for name, host in workers.items():
            if used[host] < hosts.get(host, 0):
                used[host] += 1
            else:
                drain.append(name)
        room = sum(hosts.values()) if self._most is None else self._most - len(workers)
        free = [
            host for host, slots in hosts.items() for _ in range(slots - used[host]) if now >= self._resting_until(host)
        ]
        return Change(free[: max(0, room)], drain)

    def _resting_until(self, host: str) -> float:
        longest = _LONGEST if self._cooldown is None else self._cooldown[1]
        until = self._refusals.get(host, float("-inf")) + longest
        times = self._failures.get(host)
        if not times:
            return until
        failures = min(len(times), _MOST_DOUBLINGS)
        if self._cooldown is None:
            pause = 2.0 ** (failures - 2) if failures > 1 else 0.0
        else:
            pause = self._cooldown[0] * 2.0 ** (failures - 1)
        return max(until, times[-1] + min(pause, longest))
