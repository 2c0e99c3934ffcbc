"""The claim that gives a URL to one job at a time: an object that names the job and is rewritten every few seconds. A claim
that does not change was left by a killed job. The clocks of different hosts are never compared.
"""

import contextlib
import json
import os
import socket
import threading
import time
import uuid
from typing import Any, Callable, Optional

from horovod.elastic import folder_lock
from horovod.elastic.folder_lock import InUse
from horovod.elastic.messages import say

_NAME = ".claim"
_BEAT_S = 5.0
# How long another job's claim must have stood still: six beats, as a busy host may miss some.
_PATIENCE_S = 30.0
_PAUSE_S = 1.0

Holder = dict[str, Any]  # the content of a claim


class Claim:
    """The claim of this process for its job. One thread uses it; the claim starts another thread, which renews it.

    Args:
      store: the fsspec file system.
      where: the URL, for messages.
      key_of: a function that returns the key of an object there.
    """

    def __init__(self, store: Any, where: str, key_of: Callable[[str], str]) -> None:
        self._store, self._where, self._key = store, where, key_of(_NAME)
        self._writer = uuid.uuid4().hex
        self._job = ""
        self._beats = 0
        self._lost = ""  # to another job, permanently: its worlds are numbered from this one's on
        self._thread: Optional[threading.Thread] = None
        self._ended = threading.Event()

    def take(self, job: str) -> None:
        """Claims the URL for `job` until :meth:`release`; waits until another job's claim is one that nobody renews.

        Raises InUse if another job has it, and what the store raises.
        """
        if self._thread is not None:
            return self.confirm()
        self._job = job
        self._wait_for_another()
        self._write()
        self._thread = threading.Thread(target=self._beat, name="hvd-claim", daemon=True)
        self._thread.start()

    def confirm(self) -> None:
        """Raises InUse if another job has taken the URL, which happens after a long pause of this process."""
        holder = self._read()
        if self._is_another(holder):
            self._lost = self._text(holder)
        if self._lost:
            raise InUse(self._lost)

    def release(self) -> None:
        """Releases the URL, if this process was the last to claim it."""
        if self._thread is None:
            return
        self._ended.set()
        self._thread.join(_BEAT_S)
        with contextlib.suppress(Exception):  # the next job waits until the claim is old
            holder = self._read()
            if holder is not None and holder.get("writer") == self._writer:
                self._store.rm_file(self._key)

    def _wait_for_another(self) -> None:
        first = self._read()
        if first is None or not self._is_another(first) or _PATIENCE_S <= 0:
            return
        say(
            f"{self._where} is claimed by {folder_lock.holder(first)}: it is taken over if that is gone, which takes {_PATIENCE_S:.0f} s"
        )
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
            holder = self._read()
            if not self._is_another(holder):
                return
            if holder != first:
                raise InUse(self._text(holder))

    def _is_another(self, holder: Optional[Holder]) -> bool:
        return holder is not None and holder.get("job") != self._job

    def _beat(self) -> None:
        while not self._ended.wait(_BEAT_S):
            try:
                self.confirm()
                self._write()
            except InUse:
                return
            except Exception:  # the store is unreachable: retry at the next beat
                continue

    def _write(self) -> None:
        self._beats += 1
        host, pid = socket.gethostname(), os.getpid()
        holder = {"job": self._job, "host": host, "pid": pid, "writer": self._writer, "beat": self._beats}
        self._store.pipe_file(self._key, json.dumps(holder).encode())

    def _read(self) -> Optional[Holder]:
        try:
            holder = json.loads(self._store.cat_file(self._key))
        except FileNotFoundError:
            return None
        except ValueError:
            return {}
        return holder if isinstance(holder, dict) else {}

    def _text(self, holder: Optional[Holder]) -> str:
        who = folder_lock.holder(holder or {})
        return f"{self._where} is in use by another job ({who}): give each job its own checkpoint_dir"
