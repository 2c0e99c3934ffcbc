"""The settings of executors that are not separate arguments."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Optional, Union

from horovod.runner._engine_options import check_counts, check_networks, check_seconds, check_verbosity

Networks = Union[str, Collection[str], None]


@dataclass
class MiniSettings:
    """The settings of :class:`horovod.ray.RayExecutor`.

    Attributes:
      nics: the names of network interfaces, or networks, that workers may use; None: the way to the driver.
      verbose: from 2 on, the daemon's messages go to stderr; below, to the logger ``horovod.ray``.
      timeout_s: the time in seconds for all workers to join, after their placement group is ready.
      placement_group_timeout_s: the time in seconds for the placement group to be ready.
      discovery: an elastic executor's source of hosts; see its argument ``override_discovery``.
      elastic: whether the executor is elastic; the executor sets it.
      key, ssh_port, ssh_identity_file: accepted for compatibility. Ray starts the workers, without ssh, and each job has
        its own key.
    """

    nics: Networks = None
    verbose: int = 1
    key: Any = None
    ssh_port: Optional[int] = None
    ssh_identity_file: Optional[str] = None
    timeout_s: float = 300
    placement_group_timeout_s: float = 100
    elastic: bool = False
    discovery: Any = None

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raises TypeError or ValueError for an invalid setting."""
        check_networks(self.nics)
        check_verbosity(self.verbose)
        check_seconds(timeout_s=self.timeout_s, placement_group_timeout_s=self.placement_group_timeout_s)


@dataclass
class ElasticSettings(MiniSettings):
    """The settings of :class:`horovod.ray.ElasticRayExecutor`. Those that it adds are as the arguments of RayExecutor."""

    min_num_proc: int = 1
    max_num_proc: Optional[int] = None
    elastic_timeout: float = 600
    reset_limit: Optional[int] = None
    cooldown_range: Optional[tuple[int, int]] = None
    elastic: bool = True

    def check(self) -> None:
        super().check()
        check_counts(min_num_proc=self.min_num_proc, max_num_proc=self.max_num_proc)
        check_counts(0, reset_limit=self.reset_limit)
        check_seconds(elastic_timeout=self.elastic_timeout)


def interfaces(settings: Any) -> Optional[list[str]]:
    """Returns the network interfaces of `settings` as a list; None: no choice is made."""
    nics: Networks = settings.nics
    if not nics:
        return None
    return nics.split(",") if isinstance(nics, str) else sorted(nics)
