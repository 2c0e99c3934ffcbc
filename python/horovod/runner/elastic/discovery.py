"""Sources of hosts, for the elastic executors of :mod:`horovod.ray`."""


class HostDiscovery:
    """A source of hosts."""

    def find_available_hosts_and_slots(self) -> dict[str, int]:
        """The hosts that may be used now, each with its number of slots. Called again and again."""
        raise NotImplementedError
