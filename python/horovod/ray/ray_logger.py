"""Values that workers send to callbacks of the driver."""

import os
import sys
import warnings
from typing import Any

_queue: Any = None  # of this process
_warned = False


def configure(queue: Any) -> None:
    """Sets the queue for the values of this process.

    Args:
      queue: a ``ray.util.queue.Queue``; None: values are dropped.
    """
    global _queue
    _queue = queue


def log(info_dict: dict[str, Any], chief_only: bool = False) -> None:
    """Sends a value to the driver, which calls each of the executor's callbacks with it.

    Args:
      info_dict: the value.
      chief_only: whether only rank 0's values are sent.
    """
    global _warned
    if chief_only and _rank() != 0:
        return
    if _queue is not None:
        _queue.put((False, info_dict))
    elif not _warned:
        warnings.warn("ray_logger.log() has nowhere to go: the executor was given no callbacks", stacklevel=2)
        _warned = True


def _rank() -> int:
    # In an elastic job a worker's rank changes, and the environment does not.
    basics = sys.modules.get("horovod.common.basics")
    if basics is not None and basics.is_initialized():
        rank: int = basics.rank()
        return rank
    return int(os.environ.get("HOROVOD_RANK", "-1"))
