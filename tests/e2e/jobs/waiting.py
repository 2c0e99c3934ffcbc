"""Waiting in jobs for files that a test makes, or the job itself: no event tells of them."""

import time


def wait_until(condition):
    """Until `condition()` holds. The test has the limit."""
    while not condition():
        time.sleep(0.02)
