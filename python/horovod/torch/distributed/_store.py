"""The store of torch.distributed, as the runtime uses it."""

import datetime
from typing import Any, Optional

_PREFIX = "horovod/"


class GroupStore:
    """The part of a store that belongs to one group."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def set(self, key: str, value: bytes) -> None:
        """Sets a key."""
        # In hexadecimal digits: some stores keep texts only.
        self._store.set(_PREFIX + key, value.hex())

    def get(self, key: str, seconds: float) -> Optional[bytes]:
        """Waits for a key and returns its value; None: nobody has set it within `seconds`."""
        try:
            self._store.wait([_PREFIX + key], datetime.timedelta(seconds=max(seconds, 0.001)))
        except RuntimeError as error:
            if "imeout" in str(error) or "timed out" in str(error):
                return None
            raise
        return bytes.fromhex(self._store.get(_PREFIX + key).decode())
