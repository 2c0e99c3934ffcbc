"""The job of an executor: its daemon, which runs where the executor's adapter runs."""

import logging
import sys
from typing import Any, Callable

import ray

from horovod.runner._addresses import own_address
from horovod.runner._job import Job, Limits

logger = logging.getLogger("horovod.ray")


def start_job(limits: Limits, settings: Any) -> Job:
    """Starts a job for actors of this cluster; its daemon listens at the address by which Ray knows this node.

    Raises ValueError for limits that contradict each other.
    """
    address = ray.util.get_node_ip_address()
    return Job(limits, listen=[own_address(address)], name=address, report=_reporter(settings.verbose))


def _reporter(verbose: int) -> Callable[[str], None]:
    if verbose >= 2:
        return lambda line: print(line, file=sys.stderr, flush=True)
    return lambda line: logger.info("%s", line)
