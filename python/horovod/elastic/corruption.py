"""Detection of silent data corruption: each commit compares what all ranks should hold alike.

The checksums of a commit's tensors are there when it has been copied. One small reduction tells whether they are equal on all
ranks. If they are not, the ranks exchange them, and :func:`horovod.elastic.replicas.judge` says which rank differs.
"""

import array
import contextlib
import itertools
from collections.abc import Sequence
from typing import NamedTuple, NoReturn, Optional

from horovod import _ffi
from horovod.common import basics, ops
from horovod.common.exceptions import ABORTED, HorovodInternalError, StateCorrupted
from horovod.common.objects import allgather_object
from horovod.elastic import checkpoint_folder
from horovod.elastic.messages import say
from horovod.elastic.pieces import Copy, Pieces
from horovod.elastic.replicas import Finding, Knowledge, Piece, Record, judge

# The numbers of base/settings/on_corruption.h.
OFF, WARN, EVICT, END = range(4)
_OPERATION = "horovod.commit.equal"


def policy() -> int:
    """Returns what the job does about corruption; OFF, too, if there is nobody to compare with. The same on all ranks."""
    return _ffi.on_corruption() if basics.is_initialized() and basics.size() > 1 else OFF


class _Compared(NamedTuple):
    """Pieces with their checksums."""

    pieces: Pieces
    checksums: "array.array[int]"

    def digest(self) -> int:
        return self.pieces.digest(self.checksums)

    def by_piece(self) -> dict[Piece, int]:
        return self.pieces.by_piece(self.checksums)


class _Told(NamedTuple):
    """What a rank sends: a record without the pieces, which nearly always are the same on all ranks."""

    host: str
    prefix: bytes  # see Pieces
    checksums: bytes
    watched: bytes  # 1 for each piece that is
    gone_back: bytes  # likewise

    def record(self, pieces: Sequence[Piece]) -> Record:
        checksums = array.array("I", self.checksums)
        return Record(
            self.host, dict(zip(pieces, checksums)), _marked(pieces, self.watched), _marked(pieces, self.gone_back)
        )


def _marks(pieces: Sequence[Piece], marked: frozenset[Piece]) -> bytes:
    return bytes(piece in marked for piece in pieces)


def _marked(pieces: Sequence[Piece], marks: bytes) -> frozenset[Piece]:
    return frozenset(itertools.compress(pieces, marks))


def _exchange(compared: _Compared, known: Knowledge) -> list[Record]:
    """Returns what all ranks say."""
    pieces = compared.pieces.pieces
    own = _Told(
        checkpoint_folder.host(),
        compared.pieces.prefix,
        compared.checksums.tobytes(),
        _marks(pieces, known.watched),
        _marks(pieces, known.gone_back),
    )
    told = [_Told(*each) for each in allgather_object(tuple(own), _OPERATION + ".records")]
    if all(each.prefix == own.prefix for each in told):
        return [each.record(pieces) for each in told]
    of_ranks = allgather_object([tuple(piece) for piece in pieces], _OPERATION + ".pieces")
    return [each.record([Piece(*piece) for piece in theirs]) for each, theirs in zip(told, of_ranks)]


def _wait_until_all_know() -> None:
    """Waits until all ranks have what was exchanged. A rank that acts on it sooner may break the world while another still waits for it, which
    would then not learn that it is the outlier. This one has learned it, whatever becomes of the wait.
    """
    with contextlib.suppress(HorovodInternalError):
        allgather_object(None, _OPERATION + ".known")


class Watch:
    """Compares the commits of one state, which all ranks make together.

    Attributes:
      is_outlier: whether this rank has been found to differ from a majority, and has not got the state anew. Its commits do not
        count then.
    """

    def __init__(self) -> None:
        self.is_outlier = False
        self._knowledge = Knowledge()
        self._world = 0
        self._named: set[int] = set()  # outliers of which a line has told
        self._named_groups: set[tuple[tuple[int, ...], ...]] = set()  # the same of ranks without a majority
        self._of: Optional[Pieces] = None  # of which the following are parts
        self._compared = self._given_up = Pieces((), (), ())

    def note_sync(self) -> None:
        """Says that this rank has got the state of rank 0, or has given it."""
        self.is_outlier = False

    def begin(self, copy: Optional[Copy]) -> "Comparison":
        """Starts to compare a commit. All ranks call it, those without a copy that can be compared, too."""
        self._enter_world()
        if copy is None:
            return Comparison(self, None, None)
        if copy.pieces is not self._of:
            self._select(copy.pieces)
        given_up = _Compared(self._given_up, self._given_up.checksums(copy.begin))
        return Comparison(self, _Compared(self._compared, self._compared.checksums(copy.begin)), given_up)

    def _enter_world(self) -> None:
        world = _ffi.query("epoch")
        if world != self._world:
            self._world, self._of = world, None
            self._forget_named()
            self._knowledge.enter_world()

    def _forget_named(self) -> None:
        self._named.clear()
        self._named_groups.clear()

    def _select(self, pieces: Pieces) -> None:
        known = self._knowledge
        self._of = pieces
        self._compared = pieces.selected(piece for piece in pieces.pieces if not known.skips(piece))
        self._given_up = pieces.selected(known.given_up)
        known.expect_others()

    def note_equal(self, compared: _Compared, given_up_are_equal: bool) -> None:
        known = self._knowledge
        if not known.is_settled():
            known.note_equal(compared.by_piece())
        if known.given_up and given_up_are_equal:
            known.note_healed()
            self._forget_named()
            self.is_outlier, self._of = False, None

    def examine(self, compared: _Compared, commit: int) -> None:
        """Finds out which ranks differ, which all ranks do together, and acts. Returns if this rank's commit is made nevertheless."""
        known = self._knowledge
        checksums = compared.by_piece()
        records = _exchange(compared, known)
        _wait_until_all_know()
        finding = judge(records)
        known.note_different(finding, checksums)
        self._of = None
        if not finding.unlike:
            return
        if finding.is_scattered:
            _say(f"{_what(finding)} differ between all ranks since commit {commit}: they are not compared any more")
            return
        text = f"silent data corruption at commit {commit}: {_who(finding, records)}"
        self._act(finding, text, commit, records)

    def _act(self, finding: Finding, text: str, commit: int, records: Sequence[Record]) -> None:
        is_outlier = basics.rank() in finding.outliers
        chosen = policy()
        if chosen == END:
            _leave(f"{text}; the job ends", ends_job=True)
        if chosen == EVICT and finding.outliers:
            text += f"; the others go on from commit {commit - 1}"
            if is_outlier:
                _leave(text, ends_job=False)
            _say(text)
            raise HorovodInternalError(text, code=ABORTED)
        # Only rank 0 reports commits and writes checkpoints, so it can't go on as an outlier.
        if chosen == EVICT or 0 in finding.outliers:
            text += self._go_back(finding, text, commit, records)
        else:
            self.is_outlier = self.is_outlier or is_outlier
            text += "; its commits do not count until it gets the state anew" if finding.outliers else ""
        self._say_once(finding, text)

    def _go_back(self, finding: Finding, text: str, commit: int, records: Sequence[Record]) -> str:
        """Raises HorovodInternalError, with which all ranks go back to the commit before. Where they have done so before, for the same
        pieces, it returns what is said instead.
        """
        before = frozenset[Piece]().union(*(record.gone_back for record in records))
        if not before.isdisjoint(finding.unlike):
            self._knowledge.let_differ(finding.unlike)
            return ", again: so it is the script's doing, and not compared any more"
        self._knowledge.gone_back = before | frozenset(finding.unlike)
        text += f"; all ranks go back to commit {commit - 1}"
        _say(text)
        raise HorovodInternalError(text)

    def _say_once(self, finding: Finding, text: str) -> None:
        """Says so, if it is the first line of these ranks in this world: what differs once spreads, as from an optimizer's state to the
        parameters.
        """
        if finding.outliers:
            is_new = not self._named.issuperset(finding.outliers)
            self._named.update(finding.outliers)
        else:
            is_new = finding.groups not in self._named_groups
            self._named_groups.add(finding.groups)
        if is_new:
            _say(text)


class Comparison:
    """The comparison of one commit.

    Args:
      watch: that of the state.
      compared: the pieces that are compared; None: there are none, since this rank's commit could not be kept.
      given_up: the pieces that were unequal before.
    """

    def __init__(self, watch: Watch, compared: Optional[_Compared], given_up: Optional[_Compared]) -> None:
        self._watch = watch
        self._compared = compared
        digests = (compared.digest(), given_up.digest()) if compared and given_up else (0, 0)
        numbers = (int(compared is None), *digests, *(-digest for digest in digests))
        self._numbers = array.array("q", numbers)
        address = self._numbers.buffer_info()[0]
        request = _ffi.request(
            _OPERATION, _ffi.ALLREDUCE, _ffi.INT64, (len(numbers),), address, address, reduction=_ffi.MAX
        )
        self._handle = ops.submit([request], _ffi.release, self._numbers)

    def drop(self) -> None:
        """Ends the comparison of a commit that is not made."""
        with contextlib.suppress(HorovodInternalError):
            ops.discard(self._handle)

    def end(self, commit: int) -> None:
        """Waits for the other ranks, and acts as the job's policy says if they differ. `commit` is the number of this one.

        Raises:
          HorovodInternalError: the world is broken, or all ranks have to go back to the commit before.
          StateCorrupted: this process ends.
        """
        ops.synchronize(self._handle)
        some_rank_has_none, most, most_given_up, least, least_given_up = self._numbers
        if some_rank_has_none or self._compared is None:
            return
        if most == -least:
            self._watch.note_equal(self._compared, most_given_up == -least_given_up)
        else:
            self._watch.examine(self._compared, commit)


def _leave(text: str, ends_job: bool) -> NoReturn:
    """Ends this process, with a report to the daemon, which says why."""
    basics.fail(text, ends_job)
    raise StateCorrupted(text)


def _say(text: str) -> None:
    if basics.rank() == 0:
        say(text)


def _what(finding: Finding) -> str:
    kinds = " and ".join(dict.fromkeys(piece.kind for piece in finding.unlike))
    count = len(finding.unlike)
    return f"{kinds} ({'' if count == 1 else f'{count} tensors, first '}{finding.unlike[0].name})"


def _who(finding: Finding, records: list[Record]) -> str:
    if finding.outliers:
        ranks = " and ".join(f"rank {rank} on host {records[rank].host}" for rank in finding.outliers)
        return f"{ranks} differ{'s' if len(finding.outliers) == 1 else ''} from the other ranks in {_what(finding)}"
    groups = " and ".join(_ranks(group) for group in finding.groups)
    return f"{groups} differ from each other in {_what(finding)}, and no majority says which is right"


def _ranks(ranks: tuple[int, ...]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"
