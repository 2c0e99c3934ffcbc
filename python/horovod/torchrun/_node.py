"""This process as a node: a worker of a job of horovod-rendezvousd that an agent has adopted."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
from typing import Any, Callable, NamedTuple, Optional, TypeVar

from horovod import _ffi
from horovod.common.exceptions import HorovodInternalError, WorkerReleased
from horovod.runner._adoption import Adoption
from horovod.torchrun._daemon import Daemon

_NOTE_BYTES = 1024
_MOST_LOST_WORLDS = 10  # in a row, that broke while they formed
_LEAVE_SECONDS = 15.0  # for the job to release a node that asks for it
_VERDICT_SECONDS = 5.0
_RELEASED = "this worker is not needed any more: "

T = TypeVar("T")


class Place(NamedTuple):
    """This node's place in a world, and what rank 0 has told all of its nodes."""

    rank: int
    size: int
    note: str


class Left(Exception):
    """This node is in the job no more, and that is no failure: the job has released it, or has ended well."""


class Closed(Exception):
    """The job is over, or does not take this node; the text says why."""


class Node:
    """Joins the job at once, and its worlds by :meth:`next_world`. All methods but :meth:`is_changing` are for one thread.

    Calls of the runtime block for as long as the job wants, so they run on a thread of this object: the caller waits as Python does, and
    signals reach it.

    Args:
      daemon: the job's.
      run_id: what all nodes of the job must have in common.
      name: this node's name in the job; None: the machine's name.
      patience: the seconds for which the agent tries to reach the daemon.
    """

    def __init__(self, daemon: Daemon, run_id: str, name: Optional[str], patience: float) -> None:
        self._run_id = run_id
        self._pid = os.getpid()
        self._is_in = False  # a world, also a broken one
        self._has_left = threading.Event()
        self._is_told_to_stop = threading.Event()
        self.address = ""  # of this machine, for other nodes; known in a world
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._serve, name="horovod-rendezvous", daemon=True).start()
        self._adoption = Adoption(
            daemon.address, daemon.credentials, host=name, on_stop=self._stop, start_timeout=patience
        )

    def next_world(self, note: Callable[[], str]) -> Place:
        """Leaves the present world and returns the place in the next one. Blocks until that has formed, with this node: a surplus node
        waits until it is needed.

        Args:
          note: called on rank 0 of each world that forms, on another thread; all nodes receive what it returns.

        Raises Left or Closed. Then the node is in the job no more.
        """
        try:
            if self._has_left.is_set() or self._is_told_to_stop.is_set():
                raise Closed("the job is over")
            return self._on_thread(lambda: self._enter(note))
        except Closed as closed:
            self.leave(str(closed))
            raise
        except WorkerReleased as released:
            self._end(0)
            raise Left(released.reason.removeprefix(_RELEASED)) from None
        except HorovodInternalError as error:
            self.leave(str(error))
            raise Closed(str(error)) from None

    def is_changing(self) -> bool:
        """Returns whether the job wants another world than the present one, or none."""
        return self._is_told_to_stop.is_set() or (self._is_in and _ffi.world_is_changing())

    def leave(self, error: Optional[str] = None) -> None:
        """Leaves the job: because this node's work is done, or with the `error` that has ended it. Later calls do nothing."""
        if self._has_left.is_set() or os.getpid() != self._pid:
            return
        if self._is_in:
            with contextlib.suppress(HorovodInternalError):
                self._on_thread(lambda: self._leave_world(error))
        self._end(0 if error is None else 1)

    def drain(self) -> None:
        """Leaves the job as a node that is needed elsewhere: the others go on in a world that was planned. Later calls do nothing."""
        if self._has_left.is_set() or os.getpid() != self._pid:
            return
        self._adoption.drain()
        if self._is_in:
            with contextlib.suppress(HorovodInternalError, WorkerReleased, TimeoutError):
                self._on_thread(_ffi.reset, _LEAVE_SECONDS)
        self._end(0)

    def _enter(self, note: Callable[[], str]) -> Place:
        for attempt in range(_MOST_LOST_WORLDS):
            if self._is_in:
                _ffi.reset()
            else:
                self._enter_first()
            rank, size = _ffi.query("rank"), _ffi.query("size")
            try:
                said = [json.loads(text) for text in _allgather(self._words(note() if rank == 0 else ""), size)]
                self._check_run(said[0]["run_id"])
                if all(words["run_id"] == self._run_id for words in said):
                    return Place(rank, size, said[0]["note"])
                reason = "another node leaves, which has another --rdzv-id"
            except HorovodInternalError as error:
                if not error.caused_by_peer or attempt + 1 == _MOST_LOST_WORLDS:
                    raise
                reason = str(error)
            # Or the job would count a world in which nothing was done as one that works.
            _ffi.forget_work()
            _ffi.note_error(reason, caused_by_peer=True)
        raise Closed(reason)

    def _words(self, note: str) -> str:
        return json.dumps({"run_id": self._run_id, "note": note})

    def _check_run(self, run_id: str) -> None:
        if run_id != self._run_id:
            raise Closed(f"--rdzv-id is {self._run_id} here, and {run_id} on the other nodes of the job")

    def _enter_first(self) -> None:
        before = dict(os.environ)
        self._wait_for_start()
        self.address = os.environ.get("HOROVOD_HOST_ADDRESS", "127.0.0.1")
        try:
            _ffi.init()
            self._is_in = True
            if _ffi.is_deferred():
                _ffi.join_world()
        finally:
            # They are this process's, and not for the workers that it starts.
            for name in os.environ.keys() - before.keys():
                del os.environ[name]
            os.environ.update(before)

    def _wait_for_start(self) -> None:
        try:
            self._adoption.wait_for_start()
        except RuntimeError as error:
            if self._adoption.exit(0) == 0:  # the agent's code, which is the job's
                raise WorkerReleased("the job has ended well without this node") from None
            raise Closed(str(error)) from None

    def _leave_world(self, error: Optional[str]) -> None:
        if error:
            _ffi.report_failure(error, False)
        try:
            if error is None or not _ffi.world_is_changing():
                _ffi.shutdown()
        finally:
            if error:
                _ffi.report_failure(error, False)  # that it has shut down meant that it was done

    def _end(self, code: int) -> None:
        self._has_left.set()
        self._is_in = False
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._adoption.exit(code, _VERDICT_SECONDS)

    def _stop(self, seconds: float) -> None:
        """torchrun asks :meth:`is_changing` while its workers run. When it does not (they have ended, and it waits for those of other
        nodes), SIGTERM ends it.
        """
        self._is_told_to_stop.set()
        if not self._has_left.wait(seconds / 2):
            os.kill(self._pid, signal.SIGTERM)

    def _serve(self) -> None:
        while True:
            self._calls.get()()

    def _on_thread(self, call: Callable[[], T], timeout: Optional[float] = None) -> T:
        """Returns what `call` returns on this object's thread, or raises what it raises; TimeoutError if that takes too long."""
        outcome: list[Any] = []
        done = threading.Event()

        def run() -> None:
            try:
                outcome.extend((call(), None))
            except BaseException as error:
                outcome.extend((None, error))
            done.set()

        self._calls.put(run)
        if not done.wait(timeout):
            raise TimeoutError
        value, error = outcome
        if error is not None:
            raise error
        result: T = value
        return result


def _allgather(words: str, size: int) -> list[str]:
    """Returns the words of all ranks of the world."""
    own = bytearray(words.encode().ljust(_NOTE_BYTES, b"\0"))
    if len(own) != _NOTE_BYTES:
        raise Closed("--rdzv-id is too long")
    every = bytearray(size * _NOTE_BYTES)
    addresses = _ffi.address_of_buffer(own), _ffi.address_of_buffer(every)
    handle = _ffi.new_handle()
    _ffi.submit([_ffi.request("torchrun", _ffi.ALLGATHER, _ffi.UINT8, (_NOTE_BYTES,), *addresses)], 0, True, handle)
    try:
        _ffi.wait(handle.value)
    finally:
        _ffi.release(handle.value)
    parts = (every[start : start + _NOTE_BYTES] for start in range(0, len(every), _NOTE_BYTES))
    return [part.rstrip(b"\0").decode() for part in parts]
