"""Commits in memory that belongs to the agent. They outlive this process, and its successor finds them. There is no such
store without an agent, or in a job that is not elastic.

A commit in the store consists of the length of a pickle as 8 bytes, little-endian; the pickle of a Head; what is known of
earlier runs; and the tensors, each at the next multiple of 64 bytes.
"""

import pickle
import struct
import sys
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

from horovod import _ffi
from horovod.common.exceptions import HorovodInternalError
from horovod.elastic.runs import runs

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
    """The parts of a commit other than its tensors. A commit without tensors has only values."""

    values: bytes  # pickled
    schema: bytes = b""
    kinds: Sequence[Any] = ()
    size: int = 0  # of the tensors
    run: int = 1  # in which the commit was made, or before which
    past: Sequence[int] = ()  # the sizes of the parts of what is known of earlier runs

    def packed(self) -> bytes:
        """Returns the first bytes of the commit, up to the tensors."""
        contents = pickle.dumps(tuple(self), protocol=4)
        return _LENGTH.pack(len(contents)) + contents


class Placed:
    """A commit in the store: sealed, or about to be sealed.

    Args:
      address: where the commit begins in memory.
      number: the commit's id; 0: not sealed yet.
      front: how many bytes come before its tensors, if it is being written.
    """

    def __init__(self, address: int, number: int = 0, front: int = 0) -> None:
        self.address = address
        self.front = front
        self.number = number  # its id; 0: not sealed yet
        self._head: Optional[Head] = None

    def head(self) -> Head:
        """Returns the unpickled Head."""
        if self._head is None:
            contents = _ffi.memory(self.address + _LENGTH.size, self._length())
            self._head = Head(*pickle.loads(contents))
        return self._head

    def values(self) -> dict[str, Any]:
        """Returns a copy of the values."""
        values: dict[str, Any] = pickle.loads(self.head().values)
        return values

    def begins_with(self, packed: bytes) -> bool:
        """Returns whether these are the first bytes of the commit, up to the tensors.

        Args:
          packed: what :meth:`Head.packed` returned.
        """
        if _LENGTH.size + self._length() != len(packed):
            return False
        return bool(_ffi.memory(self.address, len(packed)).raw == packed)

    def run(self) -> int:
        """Returns the run in which the commit was made."""
        return self.head().run

    def past(self) -> list[bytes]:
        """Returns what is known of earlier runs: see :meth:`horovod.elastic.runs.Runs.past`."""
        parts = []
        address = self._behind_head()
        for size in self.head().past:
            parts.append(bytes(_ffi.memory(address, size)) if size > 0 else b"")
            address += aligned(size)
        return parts

    def tensors(self) -> int:
        """Returns the address of the first tensor."""
        return self._behind_head() + sum(map(aligned, self.head().past))

    def _behind_head(self) -> int:
        return self.address + aligned(_LENGTH.size + self._length())

    def _length(self) -> int:
        length: int = _LENGTH.unpack(_ffi.memory(self.address, _LENGTH.size))[0]
        return length


def inherited() -> Optional[Placed]:
    """Returns the newest commit in the store, which this process's predecessor left; None if there is none."""
    found = _ffi.store_newest()
    return Placed(found.address, found.number) if found else None


def give_to(owner: object) -> None:
    """Makes the store keep the commits of `owner`, the state of a run that begins."""
    global _owner
    _owner = weakref.ref(owner)


def keeps(owner: object) -> bool:
    """Returns whether the store keeps the commits of `owner`. It keeps those of one object only: the state of the last run, or
    the first that asks.
    """
    global _owner
    if not _ffi.store_is_there():
        return False
    if _owner is None or _owner() is None:
        _owner = weakref.ref(owner)
    return _owner() is owner


def begin(head: Head, keep: Optional[Placed]) -> Placed:
    """Begins a commit whose tensors are going to be appended, and does not overwrite the commit `keep`.
    REQUIRES: :func:`keeps`. Raises MemoryError if there is too little memory.
    """
    parts = front(head)
    before = sum(aligned(len(part)) for part in parts)
    address = _ffi.store_begin(before + head.size, keep.address if keep else 0)
    append(parts)
    return Placed(address, front=before)


def front(head: Head) -> list[bytes]:
    """Returns the parts of a commit of this run, up to the tensors."""
    past = runs.past()
    packed = head._replace(run=runs.newest(), past=[len(part) for part in past]).packed()
    return [packed, *past]


def append(parts: Sequence[bytes]) -> None:
    """Appends parts to the commit that was begun."""
    _ffi.store_append([_ffi.address_of(part) for part in parts], [len(part) for part in parts])


def place(owner: Any, values: dict[str, Any]) -> Optional[Placed]:
    """Copies a commit without tensors into the store; the caller has to :func:`seal` it. Returns None if the store can't keep
    it; an unexpected reason is printed to stderr, in one line.
    """
    if not keeps(owner):
        return None
    try:
        return begin(Head(pickled(values)), None)
    except CAN_NOT_BE_KEPT as error:  # training continues
        warn_once(error)
        return None


def seal(placed: Placed, number: int) -> None:
    """Makes `placed`, which was placed last, the newest commit, with the id `number`. Does nothing if it is sealed already."""
    if placed.number == 0:
        _ffi.store_seal(number)
        placed.number = number


def pickled(values: object) -> bytes:
    """Returns the values as bytes that pickle.loads reads."""
    try:
        return pickle.dumps(values, protocol=4)
    except UNPICKLABLE:  # functions and classes that have no name
        import cloudpickle  # not before it is needed: it costs imports

        contents: bytes = cloudpickle.dumps(values)
        return contents


def aligned(size: int) -> int:
    """Returns the next multiple of the alignment."""
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def warn_once(why: object) -> None:
    """Prints one line to stderr, once per process: its commits end with the process, and why."""
    global _warned
    if not _warned:
        _warned = True
        reason = (str(why) or type(why).__name__).splitlines()[0]
        text = f"commits will not outlive this process: {reason}"
        print("Horovod: " + text, file=sys.stderr, flush=True)
