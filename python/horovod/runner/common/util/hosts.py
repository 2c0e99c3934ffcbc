"""Hosts, their slots, and the assignment of ranks to slots."""

import collections
import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

_HOST = re.compile(r"^[\w.-]+:[0-9]+$")


class HostInfo(NamedTuple):
    """A host and its number of slots."""

    hostname: str
    slots: int

    @staticmethod
    def from_string(host_string: str) -> "HostInfo":
        """Parses ``name:slots``.

        Args:
          host_string: the text.

        Raises:
          ValueError: the text has another form.
        """
        if not _HOST.match(host_string.strip()):
            raise ValueError(
                f"{host_string!r} is no host with slots: write HOST:SLOTS,HOST:SLOTS, as in node1:4,node2:4"
            )
        hostname, slots = host_string.strip().split(":")
        return HostInfo(hostname, int(slots))


class SlotInfo(NamedTuple):
    """The place of one worker: its host, ranks and sizes."""

    hostname: str
    rank: int
    local_rank: int
    cross_rank: int  # the number of the host among those that have this local rank
    size: int
    local_size: int
    cross_size: int  # how many hosts have this local rank

    def to_response_string(self) -> str:
        """Returns ``rank,size,local_rank,local_size,cross_rank,cross_size``."""
        numbers = (self.rank, self.size, self.local_rank, self.local_size)
        return ",".join(map(str, numbers + (self.cross_rank, self.cross_size)))


def parse_hosts(hosts_string: str) -> list[HostInfo]:
    """Parses ``h1:2,h2:4``.

    Args:
      hosts_string: the text.

    Raises:
      ValueError: the text has another form.

    Example:
      >>> from horovod.runner.common.util.hosts import parse_hosts
      >>> [host.slots for host in parse_hosts("h1:2,h2:4")]
      [2, 4]
    """
    return [HostInfo.from_string(host) for host in hosts_string.split(",")]


def parse_host_files(filename: str) -> str:
    """Reads a host file with lines ``name slots=N``. Empty lines and lines that begin with # are ignored.

    Args:
      filename: the path of the file.

    Returns:
      The hosts as ``h1:2,h2:4``.

    Raises:
      ValueError: a line has another form; the text names it.
      OSError: the file can't be read.
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
    """Assigns ranks to the slots of the hosts, in the given order.

    Args:
      hosts: the hosts, each a :class:`HostInfo`.
      min_num_proc: the minimum number of ranks.
      max_num_proc: the maximum number of ranks; None: all slots are used.

    Returns:
      A :class:`SlotInfo` for each rank.

    Raises:
      ValueError: there are fewer than `min_num_proc` slots.

    Example:
      >>> from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
      >>> slots = get_host_assignments(parse_hosts("h1:2,h2:4"), min_num_proc=1, max_num_proc=3)
      >>> [(slot.hostname, slot.local_rank) for slot in slots]
      [('h1', 0), ('h1', 1), ('h2', 0)]
    """
    taken: dict[str, int] = collections.Counter()
    places = []
    for host in hosts:
        first = taken[host.hostname]
        taken[host.hostname] += host.slots
        places += [(host.hostname, first + slot) for slot in range(host.slots)]
    if len(places) < min_num_proc:
        raise ValueError(f"{min_num_proc} processes need {min_num_proc} slots, but the hosts have {len(places)}")
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
