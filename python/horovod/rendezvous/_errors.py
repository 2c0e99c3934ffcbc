"""What becomes of the C API's codes."""

from collections.abc import Iterator
from contextlib import contextmanager

from horovod._ffi import _rendezvous as api
from horovod.common.exceptions import INVALID_ARGUMENT


class RendezvousError(RuntimeError):
    """The server or a job could not do what was asked for; one line says why.

    `code` is that of ``horovod/rendezvous.h``: 5 not found, 6 already exists, 8 resource exhausted,
    9 failed precondition, 13 internal, 14 unavailable, 15 data loss. An argument that can't be right
    is a ValueError instead.
    """

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


@contextmanager
def translated() -> Iterator[None]:
    """Raises ValueError or RendezvousError for a Failure."""
    try:
        yield
    except api.Failure as failure:
        if failure.code == INVALID_ARGUMENT:
            raise ValueError(failure.text) from None
        raise RendezvousError(failure.text, failure.code) from None
