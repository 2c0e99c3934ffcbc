"""Which ranks hold another state than the others, where they should hold the same: a decision without communication.

Not all that a state has is the same on all ranks, and nothing says which parts are. So a piece (a tensor of the state) counts as
replicated only from the commit on at which its value (the model, the optimizer) has been seen to change in the same way on all
ranks. What differed before belongs to its rank.
"""

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Optional


class Piece(NamedTuple):
    """A tensor of a state."""

    value: str  # of the state, such as "model"
    kind: str  # for people, such as "parameters"
    name: str  # "model.0.weight"


class Record(NamedTuple):
    """What a rank says when commits differ."""

    host: str
    checksums: Mapping[Piece, int]
    watched: frozenset[Piece]  # which it knows to be replicated
    gone_back: frozenset[Piece]  # because of which all ranks have gone back to an earlier commit


class Finding(NamedTuple):
    """How the ranks differ; the same on all ranks.

    Attributes:
      local: pieces that may differ.
      unlike: replicated pieces that differ, in order.
      outliers: the ranks that differ from a majority; (): there is none.
      groups: the ranks that are equal to each other, if no majority is.
      is_scattered: every rank differs from each other one, as after a script lets its ranks train apart; a fault hits one.
    """

    local: tuple[Piece, ...] = ()
    unlike: tuple[Piece, ...] = ()
    outliers: tuple[int, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    is_scattered: bool = False


def judge(records: Sequence[Record]) -> Finding:
    """Returns how the ranks differ, of which `records` has one each, in order."""
    replicated = frozenset[Piece]().union(*(record.watched for record in records))
    different = [piece for piece in _all_pieces(records) if len(set(_held(records, piece))) > 1]
    local = tuple(piece for piece in different if piece not in replicated)
    unlike = tuple(piece for piece in different if piece in replicated)
    if not unlike:
        return Finding(local)
    if len(records) > 2 and all(len(set(_held(records, piece))) == len(records) for piece in unlike):
        return Finding(local, unlike, is_scattered=True)
    outliers = {rank for piece in unlike for rank in _minority(_held(records, piece))}
    sound = [record for rank, record in enumerate(records) if rank not in outliers]
    if 2 * len(sound) > len(records) and all(len(set(_held(sound, piece))) == 1 for piece in unlike):
        return Finding(local, unlike, tuple(sorted(outliers)))
    return Finding(local, unlike, groups=_groups(records, unlike))


def _all_pieces(records: Iterable[Record]) -> Iterable[Piece]:
    return dict.fromkeys(piece for record in records for piece in record.checksums)


def _held(records: Iterable[Record], piece: Piece) -> list[Optional[int]]:
    return [record.checksums.get(piece) for record in records]


def _minority(held: Sequence[Optional[int]]) -> list[int]:
    """Returns the ranks that do not hold what more than half of them hold; []: there is no such majority."""
    ((most, count),) = collections.Counter(held).most_common(1)
    return [rank for rank, each in enumerate(held) if each != most] if 2 * count > len(held) else []


def _groups(records: Sequence[Record], pieces: Sequence[Piece]) -> tuple[tuple[int, ...], ...]:
    groups: dict[tuple[Optional[int], ...], list[int]] = {}
    for rank, record in enumerate(records):
        groups.setdefault(tuple(record.checksums.get(piece) for piece in pieces), []).append(rank)
    return tuple(map(tuple, groups.values()))


class Knowledge:
    """What a rank knows of the pieces of its state. Ranks of one world know the same, as each comparison says the same to all; of
    earlier worlds survivors know more than newcomers.

    Attributes:
      given_up: the pieces that differ since an alarm in this world. They are compared again once they are equal.
      watched: the pieces that are known to be replicated.
      gone_back: the pieces because of which all ranks have gone back to an earlier commit. If they differ again, in whichever world,
        the script is the cause: going back again would have no end.
    """

    def __init__(self) -> None:
        self.given_up: frozenset[Piece] = frozenset()
        self.watched: frozenset[Piece] = frozenset()
        self.gone_back: frozenset[Piece] = frozenset()
        self._local: frozenset[Piece] = frozenset()
        self._undecided: frozenset[Piece] = frozenset()  # of those that are given up: no majority was equal
        self._proven: set[str] = set()  # values that have changed in the same way on all ranks
        self._last: Mapping[Piece, int] = {}
        self._are_new, self._is_settled = True, False  # the next pieces; see is_settled

    def enter_world(self) -> None:
        """Begins a world, in which the pieces of all ranks are compared anew."""
        self.given_up = self._local = self._undecided = frozenset()
        self._last = {}
        self.expect_others()

    def skips(self, piece: Piece) -> bool:
        """Returns whether the piece is not compared."""
        return piece in self._local or piece in self.given_up

    def is_settled(self) -> bool:
        """Returns whether :meth:`note_equal` would learn nothing from the same pieces as before."""
        return self._is_settled

    def expect_others(self) -> None:
        """Says that the next pieces are not the same as before."""
        self._are_new, self._is_settled = True, False

    def note_equal(self, checksums: Mapping[Piece, int]) -> None:
        """Takes note of a commit whose compared pieces were equal on all ranks."""
        known_before = len(self._proven)
        unproven = [piece for piece in checksums if piece.value not in self._proven]
        for piece in unproven:
            if self._last.get(piece, checksums[piece]) != checksums[piece]:
                self._proven.add(piece.value)
        if self._are_new or len(self._proven) > known_before:
            self.watched |= {piece for piece in checksums if piece.value in self._proven}
        self._last, self._are_new = checksums, False
        self._is_settled = all(piece.value in self._proven for piece in unproven)

    def note_different(self, finding: Finding, checksums: Mapping[Piece, int]) -> None:
        """Takes note of how the ranks differ. `checksums` are those of the pieces that were compared."""
        apart = frozenset((*finding.local, *finding.unlike))
        if finding.is_scattered:
            self.let_differ(finding.unlike)
        else:
            self.given_up |= frozenset(finding.unlike)
            self._undecided |= frozenset(finding.unlike if finding.groups else ())
        self._local |= frozenset(finding.local)
        self.expect_others()
        self.note_equal({piece: checksum for piece, checksum in checksums.items() if piece not in apart})
        self.expect_others()

    def let_differ(self, pieces: Iterable[Piece]) -> None:
        """Says that these pieces may differ from now on."""
        self._local |= frozenset(pieces)
        self.watched -= frozenset(pieces)

    def note_healed(self) -> None:
        """Says that the pieces that were given up are equal again. Where no majority was equal, a script that averages now and then
        what its ranks train apart has more likely made them equal than a fault.
        """
        self.let_differ(self._undecided)
        self.given_up = self._undecided = frozenset()
        self.expect_others()
