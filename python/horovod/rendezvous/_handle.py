"""A handle of the C API that no call may use once it has ended."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Callable

from horovod.rendezvous._errors import RendezvousError, translated

_FAILED_PRECONDITION = 9


class Handle:
    """A server or a job, `what` in messages. Thread-safe; of no use in a forked child."""

    def __init__(self, value: int, what: str) -> None:
        self._value = value
        self._what = what
        self._owner = os.getpid()
        self._users = 0
        self._changed = threading.Condition()

    @contextmanager
    def use(self) -> Iterator[int]:
        """The handle, for one call. Raises RendezvousError once it has ended, and what the call's
        Failure becomes."""
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
        """Ends it by `function`, when no other call uses it any more. The second time, and in a
        forked child, nothing happens. It stays if `function` raises."""
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
