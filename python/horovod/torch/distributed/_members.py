"""The members of a group, connected: operations that the runtime runs in the order of the program."""

import threading
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, Optional

import torch
from torch.distributed import Work

from horovod import _ffi
from horovod.torch.distributed._tensors import address_of, number_of
from horovod.torch.distributed._works import (
    EndedWork,
    Finish,
    StartedWork,
    TransferWork,
    Waiter,
    dropped,
    shown,
)

_ENDED = EndedWork([])  # for callers that only wait
_MOST_PREPARED = 4096  # shapes that change from step to step must not fill the memory


class Piece(NamedTuple):
    """One tensor of an operation: the fields of its request other than the name, and the addresses of input and output."""

    op: int
    dtype: int
    shape: tuple[int, ...]
    source: int
    target: int
    fields: dict[str, Any]


class Members:
    """One group. The ranks' operations belong together in the order in which they are started, whatever they are: so a call needs
    no name, and ranks that start different ones get an error that says who has started what. Thread-safe, but only one thread
    may start operations if their order is to be the same on all ranks.

    Args: see :func:`horovod._ffi.open_group`.
    """

    def __init__(
        self,
        rank: int,
        size: int,
        address: str,
        name: str,
        timeout: float,
        set_value: Callable[[str, bytes], None],
        get_value: Callable[[str, float], Optional[bytes]],
    ) -> None:
        self.rank, self.size, self.name = rank, size, name
        self._id = _ffi.open_group(rank, size, address, name, timeout, set_value, get_value)
        self._timeout = timeout
        self._lock = threading.RLock()  # a signal's handler may start operations, too
        self._count = 0
        self._barriers = 0
        self._waiter = Waiter()
        self._known: dict[object, _ffi.Prepared] = {}

    @property
    def count(self) -> int:
        """How many operations were started."""
        return self._count

    def next_barrier(self) -> int:
        """Returns how many monitored barriers were begun before this one."""
        with self._lock:
            self._barriers += 1
            return self._barriers

    def start(
        self,
        pieces: Sequence[Piece],
        result: Sequence[torch.Tensor],
        keep: object,
        finish: Optional[Finish] = None,
        waits: bool = False,
        known: bool = False,
    ) -> Work:
        """Starts an operation on these pieces and returns its work, whose output tensors are `result`. `finish` is called with the
        handle when it is done, to take what the runtime has in its own memory. `keep` owns the memory. `waits`: the caller waits
        next, so the work may be done when it returns. `known`: the results are in the pieces' own memory, so that `finish` needs
        no handle.

        Raises HorovodInternalError: the group is broken. RuntimeError: an argument is invalid.
        """
        dropped.release()
        if known and waits and len(pieces) == 1:
            return self._run(self._prepared(pieces[0]), pieces[0].source, pieces[0].target, result, keep, finish)
        number = self._take_number()
        handle = _ffi.new_handle()
        work = None
        try:
            _ffi.submit(_requests(f"operation {number}", pieces), self._id, waits, handle)
        except ValueError as error:
            raise _refused(error) from None
        finally:
            if handle.value:  # also if a signal's handler has raised an exception: the work keeps the memory
                work = StartedWork(handle.value, result, finish, keep, self._waiter)
            else:
                self._return_number(number)
        assert work is not None
        if waits:
            work.wait()
            return work
        return shown(work)

    def run_known(self, key: object, piece_of: Callable[[], Piece], tensor: torch.Tensor) -> Work:
        """Runs an operation that replaces the elements of `tensor`, and waits. It is kept under `key`, so that `piece_of` is called
        for the first one only. Raises as :meth:`start`.
        """
        if dropped:
            dropped.release()
        prepared = self._known.get(key) or self._keep(key, piece_of())
        address = tensor.data_ptr()
        return self._run(prepared, address, address, [tensor], tensor, None)

    def _run(
        self,
        prepared: _ffi.Prepared,
        source: int,
        target: int,
        result: Sequence[torch.Tensor],
        keep: object,
        finish: Optional[Finish],
    ) -> Work:
        """Runs an operation on one piece, in one call of the library."""
        number, code = self._take_number(), None
        try:
            code = _ffi.run(prepared, f"operation {number}", source, target, self._id)
        finally:
            if code is None:
                _ffi.keep_for_ever(keep)  # a signal's handler has raised an exception, and the operation may still run
        if code >= _ffi.FIRST_HANDLE:
            work = StartedWork(code, result, finish, keep, self._waiter)
            work.wait()
            return work
        if code < 0:
            self._return_number(number)
        if code != 0:
            try:
                _ffi.check_run(code)
            except ValueError as error:
                raise _refused(error) from None
        if finish is None:
            return _ENDED
        with torch.no_grad():
            finish(0)
        return _ENDED

    def _take_number(self) -> int:
        with self._lock:
            self._count += 1
            return self._count

    def _return_number(self, number: int) -> None:
        """Takes back the number of an operation that was not started: the other ranks do not count it."""
        with self._lock:
            if self._count == number:
                self._count -= 1
                return
        self.abort(f"operation {number} could not be started, and others were after it")

    def _prepared(self, piece: Piece) -> _ffi.Prepared:
        fields = piece.fields
        key = (piece.op, piece.dtype, piece.shape, *(tuple(v) if type(v) is list else v for v in fields.values()))
        prepared = self._known.get(key)
        if prepared is None:
            prepared = self._keep(key, piece)
        return prepared

    def _keep(self, key: object, piece: Piece) -> _ffi.Prepared:
        if len(self._known) >= _MOST_PREPARED:
            self._known.clear()
        request = _ffi.request("", piece.op, piece.dtype, piece.shape, 0, 0, **piece.fields)
        prepared = self._known[key] = _ffi.Prepared([request])
        return prepared

    def send(self, peer: int, tag: int, memory: torch.Tensor, result: torch.Tensor) -> TransferWork:
        """Starts to send the contiguous tensor `memory` to a rank of the group. `result` is the work's output tensor."""
        dropped.release()
        try:
            number = _ffi.send(self._id, peer, tag, *_plain(memory))
        except ValueError as error:
            raise _refused(error) from None
        what = f"rank {peer} has not received the message of tag {tag}"
        return TransferWork(number, [result], None, memory, what, self._timeout)

    def receive(
        self, source: int, tag: int, memory: torch.Tensor, result: torch.Tensor, finish: Optional[Finish] = None
    ) -> TransferWork:
        """Starts to receive the contiguous tensor `memory` from a rank of the group, or from any. `finish` is called when it is
        there. `result` is the work's output tensor.
        """
        dropped.release()
        try:
            number = _ffi.receive(self._id, source, tag, *_plain(memory))
        except ValueError as error:
            raise _refused(error) from None
        anyone = source == _ffi.ANY_SOURCE
        what = f"{'no rank has sent a' if anyone else f'rank {source} has sent no'} message of tag {tag}"
        return TransferWork(number, [result], finish, memory, what, self._timeout)

    def abort(self, reason: str) -> None:
        """Breaks the group for all ranks."""
        _ffi.abort_group(self._id, reason)

    def close(self) -> None:
        """Leaves the group. Works in flight fail."""
        _ffi.close_group(self._id)
        self._waiter.close()
        self._waiter.join()


def _requests(name: str, pieces: Sequence[Piece]) -> list[_ffi.Request]:
    return [
        _ffi.request(
            name if len(pieces) == 1 else f"{name}, tensor {i}",
            piece.op,
            piece.dtype,
            piece.shape,
            piece.source,
            piece.target,
            **piece.fields,
        )
        for i, piece in enumerate(pieces)
    ]


def _refused(error: ValueError) -> RuntimeError:
    """Returns the error as torch's backends raise it, for a mistake that the runtime has found in the arguments."""
    return RuntimeError(str(error))


def _plain(memory: torch.Tensor) -> tuple[int, int, int]:
    """Returns the number of the tensor's element type, its address and its size."""
    return number_of(memory.dtype), address_of(memory), memory.numel() * memory.element_size()
