"""Handles, names and waiting: the framework-independent part of every collective."""

import array
import collections
import contextlib
import os
import sys
import threading
from collections.abc import Sequence
from typing import Any, Callable, Generic, NamedTuple, Optional, TypeVar, overload

from horovod import _ffi
from horovod.common import _process
from horovod.common.dropped import DroppedOperations
from horovod.common.exceptions import NOT_INITIALIZED, HorovodInternalError, WorkerReleased

Average = _ffi.AVERAGE
Sum = _ffi.SUM
Adasum = _ffi.ADASUM
Min = _ffi.MIN
Max = _ffi.MAX
Product = _ffi.PRODUCT

REDUCTIONS = (Average, Sum, Adasum, Min, Max, Product)


class _InFlight(NamedTuple):
    # Makes the value of a completed handle, and releases the handle; None: the value is `value`.
    finish: Optional[Callable[[int], object]]
    value: object
    keep_alive: object  # the memory that the runtime reads and writes until then


_lock = threading.Lock()
_in_flight: dict[int, _InFlight] = {}
_unnamed: dict[int, int] = collections.defaultdict(int)  # operations so far, by process set


def reset_names() -> None:
    """Restarts the numbering of unnamed operations. All ranks must do so at the same point."""
    with _lock:
        _unnamed.clear()


def _reset_names_of_the_world() -> None:
    """Restarts the numbering of unnamed operations on the set of all ranks."""
    with _lock:
        _unnamed.pop(0, None)


_process.on_init(reset_names)

V = TypeVar("V")


class Handle(int, Generic[V]):
    """The number of an operation that a script has started, whose value is a V. If the script drops it without :func:`synchronize`,
    the result and the memory of the operation are released once it is done. A copy is a plain number, which keeps nothing.
    """

    def __new__(cls, number: int) -> "Handle[V]":
        handle = super().__new__(cls, number)
        handle._pid = os.getpid()
        return handle

    _pid: int

    def __del__(self) -> None:
        # As for _ffi.ResultOwner: a forked child has no threads of the library.
        if self in _in_flight and not sys.is_finalizing() and os.getpid() == self._pid:
            _dropped.add(int(self))
            _dropped.release()

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)


def _release_if_done(handle: int) -> bool:
    if not _ffi.poll(handle):
        return False
    if _in_flight.pop(handle, None) is not None:
        _ffi.release(handle)
    return True


_dropped = DroppedOperations(_release_if_done)  # whose handles are gone


class naming:
    """A context in which one operation is submitted; gives its full name.

    The name is ``<kind>.<name>``, so operations of different kinds may have the same name. Without a name it is
    ``<kind>.noname.<n>``, where n counts the unnamed operations on this process set in this world. An operation that could
    not be submitted is not counted, so a rank that catches the error still has the same count as the other ranks.
    """

    __slots__ = ("_kind", "_name", "_number", "_process_set")

    def __init__(self, kind: str, name: Optional[str], process_set: int = 0) -> None:
        self._kind, self._name, self._process_set = kind, name, process_set
        self._number: Optional[int] = None

    def __enter__(self) -> str:
        _process.join_world()
        if self._name is not None and self._name != "":
            return f"{self._kind}.{self._name}"
        with _lock:
            self._number = _unnamed[self._process_set]
            _unnamed[self._process_set] = self._number + 1
        return f"{self._kind}.noname.{self._number}"

    def __exit__(self, error_type: Optional[type[BaseException]], *_: object) -> None:
        # An operation that Ctrl-C interrupts was submitted.
        if error_type is None or self._number is None or not issubclass(error_type, Exception):
            return
        with _lock:
            if _unnamed[self._process_set] == self._number + 1:
                _unnamed[self._process_set] = self._number


def check_ready() -> None:
    """Joins the world if this process is still deferred. Call it before reading ranks for a collective, because they may
    change. Raises :class:`HorovodInternalError` if this process can't run collectives.
    """
    if _process.is_ready():
        return
    if not _process.is_initialized():
        raise HorovodInternalError(NOT_INITIALIZED)
    _process.check_not_forked()
    _process.join_world()


def _begin() -> None:
    """Records that this process continues, with another operation. Raises as :func:`check_ready`."""
    if _dropped:
        _dropped.release()
    if not _process.go_on():
        check_ready()


def submit(
    requests: Sequence[_ffi.Request],
    finish: Callable[[int], object],
    keep_alive: object,
    process_set: int = 0,
    waits: bool = False,
) -> int:
    """Submits a group of tensors to the process set with this id and returns the operation's handle.

    `finish(handle)` makes the operation's value and releases the handle. `keep_alive` is the memory that the runtime reads
    and writes until then. With `waits` it returns when the group is done or has failed, which :func:`synchronize` reports;
    that is faster than waiting there.

    Raises:
      ValueError: a request is invalid, one of its names is in flight already, or this rank is not in the set.
      HorovodInternalError: there is no world, or it is broken.
    """
    _begin()
    handle = _ffi.new_handle()
    try:
        _ffi.submit(requests, process_set, waits, handle)
    finally:  # also if a signal's handler has raised something
        if handle.value != 0:
            _in_flight[handle.value] = _InFlight(finish, None, keep_alive)
    return handle.value


def start(
    prepared: _ffi.Prepared,
    name: str,
    addresses: tuple[int, int],
    value: object,
    keep_alive: object,
    process_set: int = 0,
) -> int:
    """Submits a prepared tensor under this name, with the addresses of input and output. `value` becomes the operation's value.
    Raises as :func:`submit`.
    """
    _begin()
    handle = _ffi.start(prepared, name, *addresses, process_set)
    _in_flight[handle] = _InFlight(None, value, keep_alive)
    return handle


def start_group(
    prepared: _ffi.Prepared,
    inputs: Sequence[int],
    outputs: Sequence[int],
    value: object,
    keep_alive: object,
    process_set: int = 0,
) -> int:
    """Submits a prepared group, with the addresses of its inputs and outputs; otherwise as :func:`start`."""
    _begin()
    handle = _ffi.start_group(prepared, inputs, outputs, process_set)
    _in_flight[handle] = _InFlight(None, value, keep_alive)
    return handle


def broadcast_stretches(
    name: str,
    addresses: Sequence[int],
    sizes: Sequence[int],
    root_rank: int,
    keep_alive: object,
    process_set: int = 0,
    append: bool = False,
) -> int:
    """Submits a broadcast of memory at several addresses; see :func:`_ffi.broadcast_stretches`. Raises as :func:`submit`."""
    _begin()
    handle = _ffi.broadcast_stretches(name, addresses, sizes, root_rank, process_set, append)
    _in_flight[handle] = _InFlight(None, None, keep_alive)
    return handle


def run(
    prepared: _ffi.Prepared,
    kind: str,
    name: Optional[str],
    addresses: tuple[int, int],
    keep_alive: object,
    process_set: int = 0,
) -> None:
    """Runs a prepared tensor, with the addresses of input and output, which `keep_alive` owns. `kind` and `name` are as for
    :class:`naming`. Raises as :func:`submit` and :func:`synchronize`.
    """
    _begin()
    code = None
    try:
        if name is not None and name != "":
            code = _ffi.run(prepared, f"{kind}.{name}", *addresses, process_set)
        else:
            with naming(kind, None, process_set) as name:
                code = _ffi.run(prepared, name, *addresses, process_set)
                if code < 0:
                    _ffi.check_run(code)
    finally:
        if code is None:
            _ffi.keep_for_ever(keep_alive)  # the runtime may still write to it
    if code == 0:
        return
    if code < _ffi.FIRST_HANDLE:
        _ffi.check_run(code)
    else:
        _in_flight[code] = _InFlight(None, None, keep_alive)
        synchronize(code)


def poll(handle: int) -> bool:
    """Returns whether an asynchronous operation is complete, so that :func:`synchronize` would return at once.

    Args:
      handle: what the function whose name ends in ``_async`` returned.

    Raises:
      ValueError: the handle is unknown, or :func:`synchronize` has returned its result already.
    """
    if handle not in _in_flight:
        raise ValueError(f"Handle {handle} was not created or has been cleared.")
    return _ffi.poll(handle)


@overload
def synchronize(handle: Handle[V]) -> V: ...


@overload
def synchronize(handle: int) -> Any: ...


def synchronize(handle: int) -> Any:
    """Waits for an asynchronous operation and returns its value; None if the handle is unknown or was waited for before.

    An exception from a signal handler, such as KeyboardInterrupt, ends the wait. The operation then stays in flight and
    keeps its memory.

    Args:
      handle: what the function whose name ends in ``_async`` returned.

    Raises:
      HorovodRequestError: the ranks' requests do not match; the world stays usable.
      HorovodInternalError: the world is broken.
    """
    operation = _in_flight.pop(handle, None)
    if operation is None:
        return None
    with _kept_if_interrupted([(handle, operation)]):
        if operation.finish is None:
            _ffi.finish((handle,))
            return operation.value
        try:
            _ffi.wait(handle)
        except HorovodInternalError:
            _ffi.release(handle)
            raise
    return operation.finish(handle)


class _kept_if_interrupted:
    """A context for waits. If anything but an operation's own error ends the wait, the operations are put back in flight,
    because the runtime still writes to their memory.
    """

    __slots__ = ("_operations",)

    def __init__(self, operations: list[tuple[int, _InFlight]]) -> None:
        self._operations = operations

    def __enter__(self) -> None:
        pass

    def __exit__(self, error_type: Optional[type[BaseException]], error: Optional[BaseException], _: object) -> None:
        if error is None or isinstance(error, (HorovodInternalError, WorkerReleased)):
            return
        for handle, operation in self._operations:
            _in_flight[int(handle)] = operation  # not the script's Handle, which it may drop


def synchronize_all(handles: Sequence[int]) -> None:
    """Waits for operations whose values are not needed. If it raises, as :func:`synchronize`, the operations that it has not
    waited for can be discarded.
    """
    waited, others = [], []
    for handle in handles:
        operation = _in_flight[handle]
        if operation.finish is None:
            waited.append((handle, _in_flight.pop(handle)))
        else:
            others.append(handle)
    with _kept_if_interrupted(waited):
        _ffi.finish([handle for handle, _ in waited])
    for handle in others:
        synchronize(handle)


def discard(handle: int) -> None:
    """Waits for an operation and drops its value or its error. Unknown handles are ignored."""
    operation = _in_flight.pop(handle, None)
    if operation is None:
        return
    with _kept_if_interrupted([(handle, operation)]), contextlib.suppress(HorovodInternalError):
        _ffi.wait(handle)
    _ffi.release(handle)


def keep_buffers_in_flight() -> None:
    """Lets the memory of operations in flight outlive the interpreter, for a process that ends while operations run."""
    _ffi.keep_for_ever(_in_flight)


def barrier(process_set: int = 0) -> None:
    """Blocks until all ranks of the process set have called it."""
    request = _ffi.request("horovod.barrier", _ffi.BARRIER)
    synchronize(submit([request], _ffi.release, None, process_set, waits=True))


def join() -> int:
    """Takes part in the other ranks' allreduces with the neutral element until all ranks have called it.

    Returns:
      The last rank that called it, the same on all ranks.
    """

    def finish(handle: int) -> int:
        last = _ffi.result(handle, 0).last_joined_rank
        _ffi.release(handle)
        return last

    last: int = synchronize(submit([_ffi.request("horovod.join", _ffi.JOIN)], finish, None))
    _reset_names_of_the_world()  # ranks that joined early have counted less
    return last


def commit_async() -> int:
    """Starts an operation without data in which every rank takes part at the same step. Its value is whether the world is about
    to change, the same on all ranks.
    """

    def finish(handle: int) -> bool:
        changing = _ffi.result(handle, 0).world_is_changing
        _ffi.release(handle)
        return changing

    return submit([_ffi.request("horovod.commit", _ffi.COMMIT)], finish, None)


def max_over_ranks(value: int) -> int:
    """Returns the largest of the ranks' numbers. Also a barrier."""
    return maxima_over_ranks("horovod.max", [value])[0]


def maxima_over_ranks(name: str, values: Sequence[int]) -> list[int]:
    """Returns the largest of the ranks' numbers at each position. Also a barrier."""
    numbers = array.array("q", values)
    address = numbers.buffer_info()[0]
    request = _ffi.request(name, _ffi.ALLREDUCE, _ffi.INT64, (len(values),), address, address, reduction=_ffi.MAX)
    synchronize(submit([request], _ffi.release, numbers, waits=True))
    return numbers.tolist()


def bytes_of_one(own: bytes) -> bytes:
    """Returns the bytes of the one rank whose `own` is not empty."""
    request = _ffi.request("horovod.bytes", _ffi.ALLGATHER, _ffi.UINT8, (len(own),), _ffi.address_of(own))

    def finish(handle: int) -> bytes:
        result = _ffi.result(handle, 0)
        gathered = bytes(_ffi.memory(result.address, result.shape[0])) if result.address else b""
        _ffi.release(handle)
        return gathered

    gathered: bytes = synchronize(submit([request], finish, own, waits=True))
    return gathered
