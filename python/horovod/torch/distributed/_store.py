"""The store of torch.distributed, as the runtime uses it."""

import datetime
import os
import time
import uuid
from typing import Any, Optional

from horovod.common.exceptions import HorovodInternalError

_PREFIX = "horovod/"
_FAILED = "failed"  # why a rank can't connect
_PAUSE = 0.001  # seconds between two looks at several ranks' words: a store can wait until all of some keys exist, but not until one does
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
        start = uuid.uuid4().hex
        if rank == 0:
            self._answer_words(start, size, seconds)
        else:
            self.set(f"word/{rank}", start.encode())
            self._add(f"said/{rank}", 1)
            answer = self.get(f"answer/{start}", seconds)
            if answer is None:
                raise HorovodInternalError(f"rank 0 has not come within {seconds:g}s")
            start = answer.decode()
            self._add(f"came/{start}/{rank}", 1)
        self._prefix = f"{_PREFIX}{start}/"

    def _answer_words(self, start: str, size: int, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        answered = dict.fromkeys(range(1, size), 0)  # by rank that has not come: its words that are answered
        while answered:
            for rank in list(answered):
                said = self._add(f"said/{rank}", 0)
                if said > answered[rank]:
                    answered[rank] = said
                    self.set(f"answer/{self._value(f'word/{rank}').decode()}", start.encode())
                elif self._add(f"came/{start}/{rank}", 0) > 0:
                    del answered[rank]
            if answered and time.monotonic() >= deadline:
                raise HorovodInternalError(f"ranks {sorted(answered)} have not come in time")
            if answered:
                time.sleep(_PAUSE)

    def _add(self, key: str, number: int) -> int:
        """Adds to a counter, which begins at 0, and returns it: how one asks for a key without waiting for it in every torch."""
        return int(self._store.add(self._prefix + key, number))

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
