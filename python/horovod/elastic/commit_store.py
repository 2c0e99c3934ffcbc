"""Commits in memory that belongs to the agent: they outlive this process, and the process that
takes its place finds them. There is none without an agent, nor in a job that is not elastic.

A commit there is the length of a pickle as 8 bytes, little-endian; the pickle of a Head; and the
tensors, each at the next multiple of 64 bytes.
"""

import pickle
import struct
import sys
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

from horovod import _ffi
from horovod.common.exceptions import HorovodInternalError

_LENGTH = struct.Struct("<Q")
_ALIGNMENT = 64

# What values raise that can't be pickled. Not all exceptions: the handler of a signal may raise any
# here, which must not be lost.
UNPICKLABLE = (
    pickle.PicklingError,
    AttributeError,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
)
# What is raised for a commit that can't be kept.
CAN_NOT_BE_KEPT = (*UNPICKLABLE, HorovodInternalError, MemoryError)

_owner: Optional["weakref.ref[Any]"] = None
_warned = False


class Head(NamedTuple):
    """What a commit holds beside tensors; of these without, for those who know them."""

    values: bytes  # pickled
    schema: bytes = b""
    kinds: Sequence[Any] = ()
    size: int = 0  # of the tensors

    def packed(self) -> bytes:
        """The beginning of the commit."""
        contents = pickle.dumps(tuple(self), protocol=4)
        return _LENGTH.pack(len(contents)) + contents


class Placed:
    """A commit in the store: sealed, or about to be."""

    def __init__(self, address: int, number: int = 0) -> None:
        self.address = address
        self.number = number  # 0: not sealed yet
        self._head: Optional[Head] = None

    def head(self) -> Head:
        if self._head is None:
            contents = _ffi.memory(self.address + _LENGTH.size, self._length())
            self._head = Head(*pickle.loads(contents))
        return self._head

    def values(self) -> dict[str, Any]:
        """A copy of the values."""
        values: dict[str, Any] = pickle.loads(self.head().values)
        return values

    def begins_with(self, packed: bytes) -> bool:
        """Whether these are the first bytes of the commit, to the tensors."""
        if _LENGTH.size + self._length() != len(packed):
            return False
        return bool(_ffi.memory(self.address, len(packed)).raw == packed)

    def tensors(self) -> int:
        """The address at which they begin."""
        return self.address + aligned(_LENGTH.size + self._length())

    def _length(self) -> int:
        length: int = _LENGTH.unpack(_ffi.memory(self.address, _LENGTH.size))[0]
        return length


def inherited() -> Optional[Placed]:
    """The newest commit of this process's predecessor, or a newer one of another host, of which the
    agent keeps copies."""
    try:
        _ffi.store_take_kept()
    except (HorovodInternalError, MemoryError) as error:
        warn_once(error)
    found = _ffi.store_newest()
    return Placed(found.address, found.number) if found else None


def keeps(owner: Any) -> bool:
    """Whether there is a store that keeps the commits of `owner`: those of one object, the first
    that asks."""
    global _owner
    if not _ffi.store_is_there():
        return False
    if _owner is None or _owner() is None:
        _owner = weakref.ref(owner)
    return _owner() is owner


def begin(head: Head, keep: Optional[Placed]) -> Placed:
    """Begins a commit whose tensors are going to be appended, and leaves the commit `keep` alone.
    REQUIRES: :func:`keeps`. Raises MemoryError if there is too little memory."""
    packed = head.packed()
    size = aligned(len(packed)) + head.size
    address = _ffi.store_begin(size, keep.address if keep else 0)
    _ffi.store_append([_ffi.address_of(packed)], [len(packed)])
    return Placed(address)


def place(owner: Any, values: dict[str, Any]) -> Optional[Placed]:
    """Copies a commit without tensors into the store; :func:`seal` is left to do. None if the store
    can't keep it; an unexpected reason is printed to stderr, one line."""
    if not keeps(owner):
        return None
    try:
        return begin(Head(pickled(values)), None)
    except CAN_NOT_BE_KEPT as error:  # the training goes on
        warn_once(error)
        return None


def seal(placed: Placed, number: int) -> None:
    """Makes `placed`, the last one, the newest commit. Does nothing if it is sealed."""
    if placed.number == 0:
        _ffi.store_seal(number)
        placed.number = number


def pickled(values: Any) -> bytes:
    """The values as pickle.loads takes them."""
    try:
        return pickle.dumps(values, protocol=4)
    except UNPICKLABLE:  # functions and classes that have no name
        import cloudpickle  # not before it is needed: it costs imports

        contents: bytes = cloudpickle.dumps(values)
        return contents


def aligned(size: int) -> int:
    """The next multiple of the alignment of parts."""
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def warn_once(why: Any) -> None:
    """Prints one line to stderr, once per process: its commits end with the process."""
    global _warned
    if not _warned:
        _warned = True
        reason = (str(why) or type(why).__name__).splitlines()[0]
        text = f"commits will not outlive this process: {reason}"
        print("Horovod: " + text, file=sys.stderr, flush=True)
