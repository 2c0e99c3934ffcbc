"""A worker of ``horovod.run``: ``python -m horovod.runner.run_task FOLDER`` calls the function that
is in the folder."""

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
    """Calls the function; leaves its value, or what it raised, in the folder."""
    (folder,) = arguments
    try:
        call = _handover.get_function(folder)
    except FileNotFoundError as error:
        sys.exit(
            "horovod.run: {}. The caller's temporary folder must be visible on every host; choose "
            "one with TMPDIR.".format(error)
        )
    try:
        value = call()
    except Exception as error:
        _handover.put_failure(folder, _rank(), error, getattr(error, "caused_by_peer", False))
        raise
    _handover.put_result(folder, _rank(), value)


if __name__ == "__main__":
    main(sys.argv[1:])
