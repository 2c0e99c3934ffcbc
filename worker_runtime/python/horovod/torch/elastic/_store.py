"""Commits in memory that belongs to the agent: they outlive this process, and the process that
takes its place finds them. There is none without an agent, nor in a job that is not elastic.

A commit there is the length of a pickle as 8 bytes, little-endian; the pickle of the values (a
pickle of their own) and of the state dicts taken apart; and the tensors, each at the next multiple
of 64 bytes.
"""

import pickle
import struct
import sys
import weakref
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple

import torch

from horovod import _ffi
from horovod.torch import _trees

_LENGTH = struct.Struct("<Q")
_ALIGNMENT = 64

_owner: Optional["weakref.ref[Any]"] = None
_warned = False


class Placed:
    """A commit in the store: sealed, or about to be."""

    def __init__(self, address: int, number: int = 0) -> None:
        self.address = address
        self.number = number  # 0: not sealed yet
        self._contents: Optional[Tuple[Dict[str, Any], Dict[str, Any]]] = None

    def contents(self) -> Tuple[Dict[str, Any], Dict[str, Any]]:
        """Values and state dicts; the latter's tensors are views of the store."""
        if self._contents is None:
            (length,) = _LENGTH.unpack(_ffi.memory(self.address, _LENGTH.size))
            contents = _ffi.memory(self.address + _LENGTH.size, length)
            values, schema, kinds, size = pickle.loads(contents)
            start = self.address + _aligned(_LENGTH.size + length)
            if size > 0:
                buffer = torch.frombuffer(_ffi.memory(start, size), dtype=torch.uint8)
            else:
                buffer = torch.empty(0, dtype=torch.uint8)
            trees = _trees.put_tensors(schema, _trees.views(kinds, buffer))
            self._contents = (pickle.loads(values), trees)
        return self._contents


class PlacedTree(NamedTuple):
    """One of the state dicts of a commit in the store."""

    commit: Placed
    name: str

    def tree(self) -> Any:
        return self.commit.contents()[1][self.name]


class Inherited(NamedTuple):
    """What the process before this one has left."""

    number: int
    commit: Placed


def inherited() -> Optional[Inherited]:
    """The newest commit of the process that was here before. REQUIRES: this one has made none."""
    found = _ffi.store_newest()
    return Inherited(found.number, Placed(found.address, found.number)) if found else None


def place(
    owner: Any, values: Dict[str, Any], trees: Dict[str, Any], keep: Optional[Placed]
) -> Optional[Placed]:
    """Copies a commit into the store, all but :func:`seal`, and leaves the commit `keep` alone.
    None if it can't be kept there; if that is no matter of course, one line on stderr says why.

    The store keeps the commits of one object, the first that asks.
    """
    if not _is_owner(owner):
        return None
    try:
        return _place(values, trees, keep)
    except Exception as error:  # whatever can't be pickled, or no memory: the training goes on
        _warn_once(error)
        return None


def begin(
    owner: Any, values: bytes, schema: bytes, kinds: Sequence[_trees.Kind], keep: Optional[Placed]
) -> Optional[Placed]:
    """Begins a commit that holds these values, pickled, and state dicts, taken apart, whose tensors
    are going to be appended. Otherwise as :func:`place`, but without Python's lock while it takes
    memory."""
    if not _is_owner(owner):
        return None
    try:
        return _begin(values, schema, kinds, keep)
    except Exception as error:  # no memory: the training goes on
        _warn_once(error)
        return None


def compare(
    newest: Placed, values: bytes, schema: bytes, kinds: Sequence[_trees.Kind]
) -> bool:
    """Begins to compare such a commit, whose tensors are going to be appended, with `newest`, the
    last one that was sealed. False if it is another one for certain.

    :func:`is_same` tells in the end.
    """
    head = _head(values, schema, kinds)
    (length,) = _LENGTH.unpack(_ffi.memory(newest.address, _LENGTH.size))
    if _LENGTH.size + length != len(head) or _ffi.memory(newest.address, len(head)).raw != head:
        return False
    _ffi.store_compare()
    _ffi.store_append([_ffi.address_of(head)], [len(head)])
    return True


def is_same() -> bool:
    """Ends a comparison: whether length and checksum are the same."""
    return _ffi.store_is_same()


def _is_owner(owner: Any) -> bool:
    global _owner
    if _owner is None or _owner() is None:
        _owner = weakref.ref(owner)
    return _owner() is owner


def seal(placed: Placed, number: int) -> None:
    """Makes `placed`, the last one, the newest commit. Does nothing if it is sealed."""
    if placed.number == 0:
        _ffi.store_seal(number)
        placed.number = number


def _place(
    values: Dict[str, Any], trees: Dict[str, Any], keep: Optional[Placed]
) -> Optional[Placed]:
    taken = _trees.take_tensors(trees)
    placed = _begin(pickled(values), taken.schema, taken.kinds, keep)
    if placed is not None:
        in_place = _trees.is_in_one_piece
        tensors = [t if in_place(t) else _trees.copied_in_one_piece(t) for t in taken.tensors]
        sizes = [t.numel() * t.element_size() for t in tensors]
        _ffi.store_append([t.data_ptr() for t in tensors], sizes)
    return placed


def _begin(
    values: bytes, schema: bytes, kinds: Sequence[_trees.Kind], keep: Optional[Placed]
) -> Optional[Placed]:
    head = _head(values, schema, kinds)
    size = _aligned(len(head)) + _size(kinds)
    address = _ffi.store_begin(size, keep.address if keep else 0)
    if address is None:
        return None
    _ffi.store_append([_ffi.address_of(head)], [len(head)])
    return Placed(address)


def _head(values: bytes, schema: bytes, kinds: Sequence[_trees.Kind]) -> bytes:
    """What comes before the tensors."""
    contents = pickle.dumps((values, schema, kinds, _size(kinds)), protocol=4)
    return _LENGTH.pack(len(contents)) + contents


def _size(kinds: Sequence[_trees.Kind]) -> int:
    return _trees.places([_trees.size_of(kind) for kind in kinds])[1]


def pickled(values: Any) -> bytes:
    """The values as pickle.loads takes them."""
    try:
        return pickle.dumps(values, protocol=4)
    except Exception:  # functions and classes that have no name
        import cloudpickle  # not before it is needed: it costs imports

        return cloudpickle.dumps(values)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _warn_once(error: BaseException) -> None:
    global _warned
    if not _warned:
        _warned = True
        reason = (str(error) or type(error).__name__).splitlines()[0]
        text = "commits will not outlive this process: {}".format(reason)
        print("Horovod: " + text, file=sys.stderr, flush=True)
