"""Polling, for states without an event. Nothing else in the tests sleeps until a condition holds."""

import time

from processes import GUARD

_INTERVAL_S = 0.02


def poll_until(condition, what, timeout=GUARD):
    """Until `condition()` holds. AssertionError with `what` was waited for, if it does not within `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"{timeout} s passed without {what}"
        time.sleep(_INTERVAL_S)
