"""Handles, names and waiting: the part of every collective that knows no framework."""

import array
import collections
import contextlib
import threading
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional, Sequence

from horovod import _ffi
from horovod.common import basics
from horovod.common.exceptions import NOT_INITIALIZED, HorovodInternalError, error_of_wait

Average = _ffi.AVERAGE
Sum = _ffi.SUM
Adasum = _ffi.ADASUM
Min = _ffi.MIN
Max = _ffi.MAX
Product = _ffi.PRODUCT

REDUCTIONS = (Average, Sum, Adasum, Min, Max, Product)


class _InFlight(NamedTuple):
    finish: Callable[[int], Any]  # of the handle, once it is done; releases it
    keep_alive: Any  # the memory that the runtime reads and writes until then


_lock = threading.Lock()
_in_flight: Dict[int, _InFlight] = {}
_unnamed: Dict[int, int] = collections.defaultdict(int)  # operations so far, by process set


def reset_names() -> None:
    """Starts the numbering of unnamed operations again. All ranks must do so at the same point."""
    with _lock:
        _unnamed.clear()


def _reset_names_of_the_world() -> None:
    """The same for operations of all ranks only."""
    with _lock:
        _unnamed.pop(0, None)


basics.on_init(reset_names)


@contextlib.contextmanager
def naming(kind: str, name: Any, process_set: int = 0) -> Iterator[str]:
    """A context in which one operation is submitted, which has `name`, or ``<kind>.noname.<n>`` if
    there is none; n counts the unnamed operations on this process set in this world.

    One that could not be submitted does not count: whoever catches its error on one rank has as
    many as the other ranks.
    """
    basics.join_world()
    if name is not None and name != "":
        yield str(name)
        return
    with _lock:
        number = _unnamed[process_set]
        _unnamed[process_set] = number + 1
    try:
        yield "{}.noname.{}".format(kind, number)
    except BaseException:
        with _lock:
            if _unnamed[process_set] == number + 1:
                _unnamed[process_set] = number
        raise


def check_ready() -> None:
    """Joins the world if that is still to be done; whoever asks for ranks in order to take part in
    a collective calls this before. Raises :class:`HorovodInternalError` if collectives can't be
    used here."""
    if not basics.is_initialized():
        raise HorovodInternalError(NOT_INITIALIZED)
    basics.check_not_forked()
    basics.join_world()


def submit(
    requests: Sequence[_ffi.Request],
    finish: Callable[[int], Any],
    keep_alive: Any,
    process_set: int = 0,
) -> int:
    """Hands over a group of tensors to be run by the process set with that id. `finish(handle)`
    makes the operation's value and releases the handle.

    Raises:
      ValueError: a bad request, one of its names is in flight already, or this rank is not in the
        set.
      HorovodInternalError: there is no world, or it is broken.
    """
    check_ready()
    basics.note_alive()
    handle = _ffi.submit(requests, process_set)
    with _lock:
        _in_flight[handle] = _InFlight(finish, keep_alive)
    return handle


def poll(handle: int) -> bool:
    """Whether :func:`synchronize` would return at once. Raises ValueError for an unknown handle."""
    if handle not in _in_flight:
        raise ValueError("Handle {} was not created or has been cleared.".format(handle))
    return _ffi.poll(handle)


def synchronize(handle: int) -> Any:
    """Waits for an operation and returns its value; None for a handle that is unknown or was waited
    for before.

    Raises:
      HorovodRequestError: what the ranks asked for does not fit together; the world goes on.
      HorovodInternalError: the world is broken.
    """
    with _lock:
        operation = _in_flight.pop(handle, None)
    if operation is None:
        return None
    try:
        _ffi.wait(handle)
    except (ValueError, HorovodInternalError) as error:
        _ffi.release(handle)
        raise error_of_wait(error) from None
    except BaseException:
        _ffi.release(handle)
        raise
    return operation.finish(handle)


def discard(handle: int) -> None:
    """Waits for an operation and drops its value, or its error. Unknown handles are ignored."""
    with _lock:
        operation = _in_flight.pop(handle, None)
    if operation is not None:
        _ffi.release(handle)


def keep_buffers_in_flight() -> None:
    """Lets the memory of operations in flight outlive the interpreter, for a process that ends amid
    them."""
    _ffi.keep_for_ever(_in_flight)


def barrier(process_set: int = 0) -> None:
    """Returns when all ranks of the process set have called it."""
    request = _ffi.request("horovod.barrier", _ffi.BARRIER)
    synchronize(submit([request], _ffi.release, None, process_set))


def join() -> int:
    """Takes part in the others' allreduces with zeros until all ranks have called it.

    Returns the last rank to do so, the same on all ranks.
    """

    def finish(handle: int) -> int:
        last = _ffi.result(handle, 0).last_joined_rank
        _ffi.release(handle)
        return last

    last = synchronize(submit([_ffi.request("horovod.join", _ffi.JOIN)], finish, None))
    _reset_names_of_the_world()  # ranks that joined early have counted less
    return last


def commit_async() -> int:
    """Starts an operation without data that every rank takes part in at the same step. Its value is
    whether the world is about to change, the same on all ranks."""

    def finish(handle: int) -> bool:
        changing = _ffi.result(handle, 0).world_is_changing
        _ffi.release(handle)
        return changing

    return submit([_ffi.request("horovod.commit", _ffi.COMMIT)], finish, None)


def max_over_ranks(value: int) -> int:
    """The largest of the ranks' numbers. Also a barrier."""
    numbers = array.array("q", [value])
    address = numbers.buffer_info()[0]
    request = _ffi.request(
        "horovod.max", _ffi.ALLREDUCE, _ffi.INT64, (1,), address, address, reduction=_ffi.MAX
    )
    synchronize(submit([request], _ffi.release, numbers))
    return numbers[0]


def bytes_of_one(data: Optional[bytes]) -> bytes:
    """The bytes of the one rank that gives any; the others give None."""
    own = data or b""
    request = _ffi.request(
        "horovod.bytes", _ffi.ALLGATHER, _ffi.UINT8, (len(own),), _ffi.address_of(own)
    )

    def finish(handle: int) -> bytes:
        result = _ffi.result(handle, 0)
        gathered = bytes(_ffi.memory(result.address, result.shape[0])) if result.address else b""
        _ffi.release(handle)
        return gathered

    return synchronize(submit([request], finish, own))
