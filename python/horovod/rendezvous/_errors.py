"""The mapping from the C API's status codes to exceptions."""

from collections.abc import Iterator
from contextlib import contextmanager

from horovod._ffi import _rendezvous as api
from horovod.common.exceptions import INVALID_ARGUMENT


class RendezvousError(RuntimeError):
    """A server or a job could not do what was requested; the text says why, in one line. Invalid arguments raise ValueError
    instead.

    Args:
      text: the reason.
      code: the code of ``horovod/rendezvous.h``: 5 not found, 6 already exists, 8 resource exhausted, 9 failed precondition,
        13 internal, 14 unavailable, 15 data loss.

    Attributes:
      code: the argument.
    """

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


@contextmanager
def translated() -> Iterator[None]:
    """A context that raises ValueError or RendezvousError in place of the C API's Failure."""
    try:
        yield
    except api.Failure as failure:
        if failure.code == INVALID_ARGUMENT:
            raise ValueError(failure.text) from None
        raise RendezvousError(failure.text, failure.code) from None
