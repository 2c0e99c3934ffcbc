"""The store of torch.distributed, as the runtime uses it."""

import datetime
import os
import time
import uuid
from typing import Any, Optional

from horovod.common.exceptions import HorovodInternalError

_PREFIX = "horovod/"
_FAILED = "failed"  # why a rank can't connect
_LOOK = 5.0  # seconds after which a rank that waits looks whether another one has failed


class GroupStore:
    """The part of a store that belongs to one group."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self._prefix = _PREFIX

    def leave_earlier_starts(self, rank: int, size: int, seconds: float) -> None:
        """Agrees with the other ranks on a new prefix, if this is a store that torchrun keeps for all starts of its workers: keys of an
        earlier start are still there, and its count of restarts differs between nodes. Each rank says a word that is new; rank 0
        answers the newest word of each rank until that rank has come. Raises HorovodInternalError: a rank does not come in time.
        """
        if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != str(True):
            return
        own = uuid.uuid4().hex
        deadline = time.monotonic() + seconds
        start = own.encode()
        if rank == 0:
            self._answer_words(own, set(range(1, size)), deadline)
        else:
            self.set(f"word/{rank}", own.encode())
            answer = self.get(f"answer/{own}", seconds)
            if answer is None:
                raise HorovodInternalError(f"rank 0 has not come within {seconds:g}s")
            start = answer
            self.set(f"came/{start.decode()}/{rank}", b"")
        self._prefix = f"{_PREFIX}{start.decode()}/"

    def _answer_words(self, own: str, missing: set[int], deadline: float) -> None:
        answered: dict[int, bytes] = {}
        while missing:
            for rank in sorted(missing):
                if not self._comes(f"word/{rank}", 0.001):
                    continue
                word = self._value(f"word/{rank}")
                if word != answered.get(rank):
                    self.set(f"answer/{word.decode()}", own.encode())
                    answered[rank] = word
                if self._comes(f"came/{own}/{rank}", 0.001):
                    missing.discard(rank)
            if missing and time.monotonic() >= deadline:
                raise HorovodInternalError(f"ranks {sorted(missing)} have not come in time")
            time.sleep(0.001 if missing else 0)

    def set(self, key: str, value: bytes) -> None:
        """Sets a key."""
        # In hexadecimal digits: some stores keep texts only.
        self._store.set(self._prefix + key, value.hex())

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
            self._store.wait([self._prefix + key], datetime.timedelta(seconds=seconds))
        except RuntimeError as error:
            if "imeout" in str(error) or "timed out" in str(error):
                return False
            raise
        return True

    def _value(self, key: str) -> bytes:
        return bytes.fromhex(self._store.get(self._prefix + key).decode())
