"""Horovod's names for what is in :mod:`horovod.elastic`."""

from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt  # noqa: F401
from horovod.elastic.loop import notification_manager, run_fn  # noqa: F401
from horovod.elastic.state import ObjectState, State  # noqa: F401
