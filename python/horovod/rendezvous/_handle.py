"""A handle of the C API, which no call may use after its end."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Callable

from horovod.rendezvous._errors import RendezvousError, translated

_FAILED_PRECONDITION = 9


class Handle:
    """The handle of a server or a job, which messages call `what`. Thread-safe. It can't be used in a forked child."""

    def __init__(self, value: int, what: str) -> None:
        self._value = value
        self._what = what
        self._owner = os.getpid()
        self._users = 0
        self._changed = threading.Condition()

    @contextmanager
    def use(self) -> Iterator[int]:
        """Returns a context with the handle, for one call. Raises RendezvousError after the handle's end, and the exceptions of
        :func:`translated`.
        """
        with self._changed:
            if not self._value or os.getpid() != self._owner:
                raise RendezvousError(f"{self._what} has ended", _FAILED_PRECONDITION)
            self._users += 1
        try:
            with translated():
                yield self._value
        finally:
            with self._changed:
                self._users -= 1
                self._changed.notify_all()

    def end(self, function: Callable[[int], None]) -> None:
        """Ends the handle by calling `function`, after all other calls have returned. Does nothing the second time, or in a forked
        child. The handle stays valid if `function` raises.
        """
        if os.getpid() != self._owner:
            return
        with self._changed:
            value, self._value = self._value, 0
            if not value:
                return
            self._changed.wait_for(lambda: self._users == 0)
        try:
            with translated():
                function(value)
        except BaseException:
            self._value = value
            raise
