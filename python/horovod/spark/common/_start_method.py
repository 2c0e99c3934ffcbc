"""The start method of multiprocessing in the processes of a training."""

import contextlib
import multiprocessing
from collections.abc import Iterator
from typing import Optional


def check_start_method(method: Optional[str]) -> None:
    """Raises ValueError for a method that this system does not have."""
    known = multiprocessing.get_all_start_methods()
    if method is not None and method not in known:
        raise ValueError(f"mp_start_method={method!r} is not one of {', '.join(known)}")


@contextlib.contextmanager
def start_method(method: Optional[str]) -> Iterator[None]:
    """A context manager in which multiprocessing starts processes by this method; None: by the one that it has. A backend may train
    in the caller's process, which gets its own method back.
    """
    if method is None:
        yield
        return
    before = multiprocessing.get_start_method(allow_none=True)
    multiprocessing.set_start_method(method, force=True)
    try:
        yield
    finally:
        multiprocessing.set_start_method(before, force=True)
