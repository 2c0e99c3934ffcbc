"""The interface of host discoveries, for the elastic executors of :mod:`horovod.ray`."""


class HostDiscovery:
    """A source of available hosts."""

    def find_available_hosts_and_slots(self) -> dict[str, int]:
        """Returns the hosts that may be used now, and the number of slots of each. It is called repeatedly."""
        raise NotImplementedError
