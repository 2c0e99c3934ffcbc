"""Named checks of a job. All ranks run each check; what fails on a rank is reported, and the next check follows while the world is whole.

Rank 0 prints a JSON line for each: {"check": NAME, "seconds": S, "skipped": REASON, "errors": {RANK: TEXT}}."""

import json
import sys
import time
import traceback

_all = []


class Skipped(Exception):
    """The check can't be run here; the same on all ranks."""


def check(function):
    """Adds a function without arguments to the checks."""
    _all.append(function)
    return function


def _attempt(function):
    """Returns (error, reason for skipping), at least one of which is empty."""
    try:
        function()
    except Skipped as reason:
        return "", str(reason)
    except Exception:
        return traceback.format_exc()[-1500:], ""
    return "", ""


def run_all(hvd=None):
    """Runs the checks and leaves the job. A check after which the ranks can't talk any more ends it with exit code 1. `hvd` is the
    framework's module, PyTorch's by default."""
    if hvd is None:
        from gpu_rank import hvd
    for function in _all:
        start = time.perf_counter()
        error, reason = _attempt(function)
        if error:
            print(f"{function.__name__} failed on rank {hvd.rank()}:\n{error}", file=sys.stderr, flush=True)
        errors = hvd.allgather_object(error, name=f"verdict on {function.__name__}")
        if hvd.rank() == 0:
            entry = {
                "check": function.__name__,
                "seconds": round(time.perf_counter() - start, 3),
                "skipped": reason,
                "errors": {rank: text for rank, text in enumerate(errors) if text},
            }
            print(json.dumps(entry), flush=True)
    hvd.shutdown()
