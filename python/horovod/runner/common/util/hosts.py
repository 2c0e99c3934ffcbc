"""Hosts, slots, and which rank goes where."""

import collections
import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

_HOST = re.compile(r"^[\w.-]+:[0-9]+$")


class HostInfo(NamedTuple):
    """A host and how many workers it takes."""

    hostname: str
    slots: int

    @staticmethod
    def from_string(host_string: str) -> "HostInfo":
        """Of ``name:slots``. Raises ValueError for anything else."""
        if not _HOST.match(host_string.strip()):
            raise ValueError(
                f"Invalid host input, please make sure it has format as : worker-0:2,worker-1:2. Got {host_string!r}."
            )
        hostname, slots = host_string.strip().split(":")
        return HostInfo(hostname, int(slots))


class SlotInfo(NamedTuple):
    """The place of one worker."""

    hostname: str
    rank: int
    local_rank: int
    cross_rank: int  # the number of the host among those that have this local rank
    size: int
    local_size: int
    cross_size: int  # how many hosts have this local rank

    def to_response_string(self) -> str:
        """``rank,size,local_rank,local_size,cross_rank,cross_size``"""
        numbers = (self.rank, self.size, self.local_rank, self.local_size)
        return ",".join(map(str, numbers + (self.cross_rank, self.cross_size)))


def parse_hosts(hosts_string: str) -> list[HostInfo]:
    """Of ``h1:2,h2:4``. Raises ValueError for anything else."""
    return [HostInfo.from_string(host) for host in hosts_string.split(",")]


def parse_host_files(filename: str) -> str:
    """``h1:2,h2:4`` of a file with lines ``name slots=N``; empty lines and those that begin with #
    do not count.

    Raises ValueError that names the line, or OSError.
    """
    hosts = []
    with open(filename) as file:
        for number, line in enumerate(file, 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            slots = re.match(r"^slots=([0-9]+)$", words[1]) if len(words) == 2 else None
            if slots is None:
                raise ValueError(f"{filename}:{number}: a host is given as 'name slots=N', not {line.strip()!r}")
            hosts.append(f"{words[0]}:{slots.group(1)}")
    return ",".join(hosts)


def get_host_assignments(
    hosts: Iterable[HostInfo], min_num_proc: int, max_num_proc: Optional[int] = None
) -> list[SlotInfo]:
    """Fills the hosts in the given order, with all their slots or `max_num_proc` workers.

    Raises ValueError if there are fewer than `min_num_proc` slots.
    """
    taken: dict[str, int] = collections.Counter()
    places = []
    for host in hosts:
        first = taken[host.hostname]
        taken[host.hostname] += host.slots
        places += [(host.hostname, first + slot) for slot in range(host.slots)]
    if len(places) < min_num_proc:
        raise ValueError(f"Requested more processes ({min_num_proc}) than there are available slots ({len(places)})")
    places = places[:max_num_proc]
    local_size = collections.Counter(name for name, _ in places)  # in the order of hosts
    slots = []
    for rank, (name, local_rank) in enumerate(places):
        alike = [other for other in local_size if local_size[other] > local_rank]
        slots.append(
            SlotInfo(
                name,
                rank,
                local_rank,
                alike.index(name),
                len(places),
                local_size[name],
                len(alike),
            )
        )
    return slots
