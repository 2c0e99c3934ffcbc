"""A worker of ``horovod.run``: ``python -m horovod.runner.run_task`` calls the function that the
caller hands out; how to reach it is on stdin."""

import os
import sys

from horovod.common import _tracebacks
from horovod.common.exceptions import translated
from horovod.runner import _handover
from horovod.runner.common.util.env import get_env_rank_and_size


def _rank() -> int:
    # The runtime's rank if the function has left it running, else the one that the launcher gave.
    basics = sys.modules.get("horovod.common.basics")
    if basics is not None and basics.is_initialized():
        rank: int = basics.rank()
        return rank
    return get_env_rank_and_size()[0]


def main() -> None:
    """Calls the function; gives back its value, or what it raised."""
    try:
        launcher = os.environ.get("HOROVOD_GLOO_RENDEZVOUS_ADDR", "")
        worker = _handover.Worker.of(_handover.take_words(), launcher)
    except (KeyError, ValueError):
        sys.exit("horovod.run: stdin does not say where the caller is; horovod.run starts this")
    try:
        call = worker.get_function()
    except OSError as error:
        sys.exit("horovod.run: no function came from {}:{}: {}".format(*worker.address, error))
    try:
        result = _handover.pickled(call())
    except Exception as error:
        worker.put_failure(_rank(), error, getattr(translated(error), "caused_by_peer", False))
        if os.environ.get("HOROVOD_ELASTIC") == "1":
            raise  # the job may go on, and the caller never see it
        _end_with(error)
    worker.put_result(_rank(), result)


def _end_with(error: Exception) -> None:
    """As an exception that nobody catches, but for the traceback: the caller shows that."""
    basics = sys.modules.get("horovod.common.basics")
    if basics is not None:
        basics.report(error)
    sys.exit(_tracebacks.in_a_line(error))


if __name__ == "__main__":
    main()
