"""The pieces of a commit: the tensors that ranks may hold in common, and where they lie in the store."""

import array
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from horovod import _ffi
from horovod.common.tensors import Kind, size_of
from horovod.elastic.replicas import Piece
from horovod.elastic.trees import Taken, places


class Pieces:
    """Pieces of a commit and their places, which count from the first tensor.

    Args:
      pieces: the pieces, in the order of their places.
      offsets: where they begin.
      sizes: how many bytes they have.
    """

    def __init__(self, pieces: Sequence[Piece], offsets: Sequence[int], sizes: Sequence[int]) -> None:
        self.pieces = pieces
        self._offsets, self._sizes = array.array("q", offsets), array.array("q", sizes)
        # The names are part of what is compared: ranks with other tensors differ.
        self.prefix = hashlib.blake2b(repr((pieces, sizes)).encode(), digest_size=16).digest()

    def selected(self, wanted: Iterable[Piece]) -> "Pieces":
        """Returns those that are among `wanted`."""
        names = frozenset(wanted)
        chosen = [number for number, piece in enumerate(self.pieces) if piece in names]
        columns: list[Sequence[Any]] = [self.pieces, self._offsets, self._sizes]
        return Pieces(*([column[number] for number in chosen] for column in columns))

    def checksums(self, begin: int) -> "array.array[int]":
        """Returns the checksums of the pieces in the commit that was begun in the store, whose tensors begin at `begin`."""
        return _ffi.store_checksums(begin, self._offsets, self._sizes)

    def digest(self, checksums: "array.array[int]") -> int:
        """Returns a number of 63 bits for the pieces, their names and their checksums. Any change of one piece's checksum changes it,
        but for one in 2**63."""
        digest = hashlib.blake2b(self.prefix + checksums.tobytes(), digest_size=8).digest()
        return int.from_bytes(digest, "little") >> 1

    def by_piece(self, checksums: "array.array[int]") -> dict[Piece, int]:
        return dict(zip(self.pieces, checksums))


class Copy(NamedTuple):
    """The pieces of a commit that was begun in the store.

    Attributes:
      pieces: all that may be replicated.
      begin: where the tensors begin in the commit.
    """

    pieces: Pieces
    begin: int


class PiecesOfTree:
    """Finds the pieces of a state's trees, and keeps them until the trees have another structure."""

    def __init__(self) -> None:
        self._schema = b""
        self._kinds: Sequence[Kind] = ()
        self._found = Pieces((), (), ())

    def find(self, taken: Taken, parts: Iterable[tuple[Piece, Any]]) -> Pieces:
        """Returns the pieces of a tree that was taken apart.

        Args:
          taken: the tree.
          parts: the pieces with their tensors; iterated over only if the tree's structure is new.
        """
        if taken.schema != self._schema or taken.kinds != self._kinds:
            self._found = _pieces_of(taken, {id(tensor): piece for piece, tensor in parts})
            self._schema, self._kinds = taken.schema, taken.kinds
        return self._found


def _pieces_of(taken: Taken, by_tensor: Mapping[int, Piece]) -> Pieces:
    sizes = [size_of(kind) for kind in taken.kinds]
    found = [
        (by_tensor[id(tensor)], offset, size)
        for tensor, offset, size in zip(taken.tensors, places(sizes)[0], sizes)
        if size > 0 and id(tensor) in by_tensor
    ]
    pieces, offsets, of_sizes = zip(*found) if found else ((), (), ())
    return Pieces(pieces, offsets, of_sizes)
