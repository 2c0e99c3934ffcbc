"""Commits with state dicts in the memory that outlives this process: see :mod:`horovod.elastic.commit_store`. Their tensors are
read in place.
"""

from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, Optional

from horovod import _ffi
from horovod.common.tensors import Kind, size_of
from horovod.elastic import commit_store
from horovod.elastic.commit_store import Head
from horovod.elastic.pieces import Pieces
from horovod.elastic.trees import Taken, Trees, places, put_tensors


class Placed(commit_store.Placed):
    """A commit in the store, with state dicts."""

    def __init__(self, trees: Trees, address: int, number: int = 0, front: int = 0) -> None:
        super().__init__(address, number, front)
        self.pieces: Optional[Pieces] = None  # that can be compared until it is sealed
        self._trees = trees
        self._contents: Optional[tuple[dict[str, object], dict[str, object]]] = None

    def contents(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns values and state dicts; the latter's tensors are views of the store."""
        if self._contents is None:
            head = self.head()
            memory = _ffi.memory(self.tensors(), head.size) if head.size > 0 else None
            tensors = self._trees.views(head.kinds, memory)
            trees = put_tensors(head.schema, tensors) if head.schema else {}
            self._contents = (self.values(), trees)
        return self._contents


class PlacedTree(NamedTuple):
    """One of the state dicts of a commit in the store."""

    commit: Placed
    name: str

    def tree(self) -> Any:
        return self.commit.contents()[1][self.name]


def place(
    trees: Trees,
    owner: Any,
    values: dict[str, Any],
    state_dicts: dict[str, Any],
    keep: Optional[Placed],
    pieces_of: Optional[Callable[[Taken], Pieces]] = None,
) -> Optional[Placed]:
    """Copies a commit into the store without sealing it; the commit `keep` is not overwritten. Returns None if the store can't
    keep it; an unexpected reason is printed to stderr, in one line. `pieces_of` returns the pieces of the state dicts that are
    compared.
    """
    if not commit_store.keeps(owner):
        return None
    try:
        return _place(trees, values, state_dicts, keep, pieces_of)
    except commit_store.CAN_NOT_BE_KEPT as error:  # training continues
        commit_store.warn_once(error)
        return None


def begin(
    trees: Trees,
    owner: Any,
    values: bytes,
    schema: bytes,
    kinds: Sequence[Kind],
    keep: Optional[Placed],
) -> Optional[Placed]:
    """Begins a commit with these pickled values and these state dicts, taken apart, whose tensors are going to be appended. It
    releases the GIL while it allocates memory. Otherwise as :func:`place`.
    """
    if not commit_store.keeps(owner):
        return None
    try:
        return _begin(trees, values, schema, kinds, keep)
    except commit_store.CAN_NOT_BE_KEPT as error:  # training continues
        commit_store.warn_once(error)
        return None


def compare(newest: Placed, values: bytes, schema: bytes, kinds: Sequence[Kind]) -> bool:
    """Begins to compare a commit whose tensors are going to be appended with `newest`, the last one that was sealed. Returns False
    if they certainly differ; otherwise :func:`is_same` returns the result at the end.
    """
    parts = commit_store.front(_head(values, schema, kinds))
    if not newest.begins_with(parts[0]):
        return False
    _ffi.store_compare()
    commit_store.append(parts)
    return True


def is_same() -> bool:
    """Ends a comparison. Returns whether length and checksum are the same."""
    return _ffi.store_is_same()


def packed(trees: Trees, values: dict[str, Any], state_dicts: dict[str, Any]) -> bytes:
    """Returns a commit with these values and state dicts as bytes, whose address :class:`Placed` takes."""
    taken = trees.take_tensors(state_dicts)
    head = _head(commit_store.pickled(values), taken.schema, taken.kinds)
    stream = bytearray(head.packed())
    begin = commit_store.aligned(len(stream))
    sizes = [size_of(kind) for kind in taken.kinds]
    for tensor, size, offset in zip(taken.tensors, sizes, places(sizes)[0]):
        stream.extend(bytes(begin + offset - len(stream)))
        if size > 0:
            whole = trees.in_one_piece(tensor)
            stream += _ffi.memory(trees.addresses([whole])[0], size, whole)
    stream.extend(bytes(begin + head.size - len(stream)))
    return bytes(stream)


def _place(
    trees: Trees,
    values: dict[str, object],
    state_dicts: dict[str, object],
    keep: Optional[Placed],
    pieces_of: Optional[Callable[[Taken], Pieces]],
) -> Placed:
    taken = trees.take_tensors(state_dicts)
    placed = _begin(trees, commit_store.pickled(values), taken.schema, taken.kinds, keep)
    for addresses, sizes in trees.stretches(taken.tensors, taken.kinds):
        _ffi.store_append(addresses, sizes)
    if pieces_of is not None:
        placed.pieces = pieces_of(taken)
    return placed


def _begin(trees: Trees, values: bytes, schema: bytes, kinds: Sequence[Kind], keep: Optional[Placed]) -> Placed:
    begun = commit_store.begin(_head(values, schema, kinds), keep)
    return Placed(trees, begun.address, front=begun.front)


def _head(values: bytes, schema: bytes, kinds: Sequence[Kind]) -> Head:
    size = places([size_of(kind) for kind in kinds])[1]
    return Head(values, schema, kinds, size)
