"""A worker of ``horovod.run``, started as a program: it calls the caller's function. stdin says how to reach the caller."""

import os
import sys
from typing import Callable

from horovod.common import _tracebacks
from horovod.common.exceptions import WorkerReleased, translated
from horovod.runner import _handover
from horovod.runner._python import paths_of_start
from horovod.runner.common.util.env import get_env_rank_and_size


def _rank() -> int:
    # The runtime's rank if the function has left it running, else the one that the launcher gave.
    basics = sys.modules.get("horovod.common.basics")
    if basics is not None and basics.is_initialized():
        rank: int = basics.rank()
        return rank
    return get_env_rank_and_size()[0]


def main() -> None:
    """Calls the function and sends its result, or its exception, to the caller."""
    folders = paths_of_start()
    try:
        launcher = os.environ.get("HOROVOD_GLOO_RENDEZVOUS_ADDR", "")
        worker = _handover.Worker.of(_handover.take_words(), launcher)
    except (KeyError, ValueError):
        sys.exit("horovod.run: stdin does not say where the caller is; horovod.run starts this")
    try:
        function = worker.get_function()
    except OSError as error:
        sys.exit("horovod.run: no function came from {}:{}: {}".format(*worker.address, error))
    try:
        result = _handover.pickled(_called(_handover.loaded(function, folders)))
    except Exception as error:
        worker.put_failure(_rank(), error, getattr(translated(error), "caused_by_peer", False))
        if os.environ.get("HOROVOD_ELASTIC") == "1":
            _end_with(error, _tracebacks.folded(error).rstrip())  # the job may go on, and the caller never see it
        _end_with(error, _tracebacks.in_a_line(error))  # the caller shows the traceback
    worker.put_result(_rank(), result)


def _called(call: Callable[[], object]) -> object:
    """Returns what `call` returns. Raises RuntimeError if it ends the process instead, because there is no result then."""
    try:
        return call()
    except WorkerReleased:
        raise
    except SystemExit as error:
        raise RuntimeError(f"the function called sys.exit({error.code!r}); it has to return") from error


def _end_with(error: Exception, text: str) -> None:
    """Ends the process as an uncaught exception does, but prints `text` only."""
    basics = sys.modules.get("horovod.common.basics")
    if basics is not None:
        basics.report(error)
    sys.exit(text)


if __name__ == "__main__":
    main()
