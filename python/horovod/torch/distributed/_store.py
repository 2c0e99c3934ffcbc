"""The store of torch.distributed, as the runtime uses it."""

import datetime
import time
from typing import Any, Optional

_PREFIX = "horovod/"
_FAILED = "failed"  # why a rank can't connect
_LOOK = 5.0  # seconds after which a rank that waits looks whether another one has failed


class GroupStore:
    """The part of a store that belongs to one group."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def set(self, key: str, value: bytes) -> None:
        """Sets a key."""
        # In hexadecimal digits: some stores keep texts only.
        self._store.set(_PREFIX + key, value.hex())

    def fail(self, text: str) -> None:
        """Lets the other ranks know that this one can't connect."""
        self.set(_FAILED, text.encode())

    def get(self, key: str, seconds: float) -> Optional[bytes]:
        """Waits for a key and returns its value; None: nobody has set it within `seconds`. Raises RuntimeError: another rank can't
        connect, or the store is broken.
        """
        deadline = time.monotonic() + seconds
        while not self._comes(key, min(max(deadline - time.monotonic(), 0.001), _LOOK)):
            if self._comes(_FAILED, 0.001):
                raise RuntimeError(self._value(_FAILED).decode())
            if time.monotonic() >= deadline:
                return None
        return self._value(key)

    def _comes(self, key: str, seconds: float) -> bool:
        try:
            self._store.wait([_PREFIX + key], datetime.timedelta(seconds=seconds))
        except RuntimeError as error:
            if "imeout" in str(error) or "timed out" in str(error):
                return False
            raise
        return True

    def _value(self, key: str) -> bytes:
        return bytes.fromhex(self._store.get(_PREFIX + key).decode())
