"""A worker of ``horovod.run``: ``python -m horovod.runner.run_task HOST PORT`` calls the function
that the caller there hands out. HOST may be "launcher", for where the launcher runs."""

import os
import sys
from typing import List

from horovod.runner import _handover


def _rank() -> int:
    # The runtime's rank if the function has left it running, else the one that the launcher gave.
    basics = sys.modules.get("horovod.common.basics")
    if basics is not None and basics.is_initialized():
        return basics.rank()
    return int(os.environ.get("HOROVOD_RANK", "0"))


def main(arguments: List[str]) -> None:
    """Calls the function; gives back its value, or what it raised."""
    host, port = arguments
    if host == "launcher":
        host = os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"]
    # Not for the function, nor for what it starts.
    key = bytes.fromhex(os.environ.pop(_handover.KEY_VARIABLE))
    worker = _handover.Worker(host, int(port), key)
    try:
        call = worker.get_function()
    except OSError as error:
        sys.exit("horovod.run: no function came from {}:{}: {}".format(host, port, error))
    try:
        result = _handover.pickled(call())
    except Exception as error:
        worker.put_failure(_rank(), error, getattr(error, "caused_by_peer", False))
        raise
    worker.put_result(_rank(), result)


if __name__ == "__main__":
    main(sys.argv[1:])
