"""Distribution of the rows of a table in files over the ranks. The rest of an epoch is distributed again when the number of
ranks changes.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Union

import numpy

from horovod.elastic.cursor import JobCursor

_Piece = Union[range, numpy.ndarray]  # consecutive rows, or rows one by one


class ElasticRows(JobCursor):
    """Distributes the rows of a table over the ranks in long runs of consecutive rows, so that a rank reads hardly more than it
    uses: the counterpart of :class:`horovod.elastic.sampler.ElasticSampler` for files.

    Put it into an elastic state; call :meth:`record_batch` after each batch, before commit, and :meth:`set_epoch` at the end
    of an epoch. Use the same batch size on all ranks.

    An epoch has an order of the row groups, which are the units in which a file is read, and an order of the rows within
    each block of `block_rows` rows that a rank reads. The guarantee is ElasticSampler's: each row is part of the committed
    work of an epoch exactly once, except for up to ``num_replicas - 1`` rows at the very end, which are repeated so that all
    ranks get the same number.

    Args:
      group_sizes: the numbers of rows of the table's row groups. Rows are numbered from 0 through all groups.
      block_rows: how many rows are shuffled with one another; a multiple of the batch size.
      shuffle: whether rows are shuffled anew for each epoch; if not, the order is the table's.
      seed: the seed of the order; the same on all ranks.

    Raises:
      ValueError: the table has no rows, or `block_rows` is less than 1.
    """

    def __init__(self, group_sizes: Sequence[int], block_rows: int, shuffle: bool = True, seed: int = 0) -> None:
        if sum(group_sizes) < 1:
            raise ValueError("there are no rows")
        if block_rows < 1:
            raise ValueError(f"block_rows is {block_rows}: it must be 1 or more")
        self.group_sizes = list(group_sizes)
        self.block_rows = block_rows
        self.shuffle = shuffle
        self.seed = seed
        self._dealings: list[tuple[int, int]] = []  # that came before: (number of ranks, rows that each has processed)
        self._done = 0  # rows that each rank has processed of the present one
        JobCursor.__init__(self)

    def set_epoch(self, epoch: int) -> None:
        self._dealings, self._done = [], 0
        super().set_epoch(epoch)

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        super().record_batch(batch_idx, batch_size)
        self._done += batch_size

    def state_dict(self) -> dict[str, Any]:
        """Returns the progress: the epoch, the number of its rows that all ranks have processed, and how they were distributed."""
        return {**super().state_dict(), "dealings": self._all_dealings()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._dealings, self._done = [(ranks, rows) for ranks, rows in state_dict["dealings"]], 0
        super().load_state_dict(state_dict)

    def reset(self) -> None:
        self._dealings, self._done = self._all_dealings(), 0
        super().reset()

    def _all_dealings(self) -> list[tuple[int, int]]:
        return self._dealings + ([(self.num_replicas, self._done)] if self._done else [])

    def __len__(self) -> int:
        """Returns how many rows this rank gets, a repeated one included."""
        return -(-len(self._left()) // self.num_replicas)

    def blocks(self) -> Iterator[numpy.ndarray]:
        """Returns an iterator over the numbers of this rank's rows, in the order of their use: int64 arrays of `block_rows` rows, of
        which the last may be shorter.
        """
        share = self._share(self._left(), len(self._dealings), self.rank, self.num_replicas)
        return (share.block(number) for number in range(share.number_of_blocks()))

    def _left(self) -> "_Rows":
        """Returns the rows of the epoch that were unprocessed at the last distribution."""
        rows = self._of_epoch()
        for number, (ranks, done) in enumerate(self._dealings):
            shares = [self._share(rows, number, rank, ranks) for rank in range(ranks)]
            rows = _Rows(list(itertools.chain.from_iterable(share.rest(done) for share in shares)))
        return rows

    def _of_epoch(self) -> "_Rows":
        starts = numpy.concatenate([[0], numpy.cumsum(self.group_sizes)]).tolist()
        order = numpy.arange(len(self.group_sizes))
        if self.shuffle:
            numpy.random.default_rng([self.seed, self._dealt_epoch]).shuffle(order)
        return _Rows([range(starts[group], starts[group + 1]) for group in order.tolist()])

    def _share(self, rows: "_Rows", dealing: int, rank: int, ranks: int) -> "_Share":
        seed = [self.seed, self._dealt_epoch, dealing, rank] if self.shuffle else None
        return _Share(rows, rank, ranks, self.block_rows, seed)


class _Rows:
    """A sequence of row numbers, made of pieces."""

    def __init__(self, pieces: list[_Piece]) -> None:
        self._pieces = [piece for piece in pieces if len(piece)]
        self._ends = list(itertools.accumulate(map(len, self._pieces)))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def cut(self, start: int, stop: int) -> list[_Piece]:
        first = numpy.searchsorted(self._ends, start, side="right")
        found: list[_Piece] = []
        for number in range(int(first), len(self._pieces)):
            piece = self._pieces[number]
            begin = self._ends[number] - len(piece)
            if begin >= stop:
                break
            found.append(piece[max(0, start - begin) : stop - begin])
        return found

    def numbers(self, start: int, stop: int) -> numpy.ndarray:
        pieces = [numpy.arange(piece.start, piece.stop) if isinstance(piece, range) else piece
                  for piece in self.cut(start, stop)]  # fmt: skip
        return numpy.concatenate([numpy.empty(0, numpy.int64), *pieces])


class _Share:
    """The rows that one rank gets: a run of consecutive ones, and a repeated one if other ranks get one more."""

    def __init__(self, rows: _Rows, rank: int, ranks: int, block_rows: int, seed: Any) -> None:
        self._rows, self._block_rows, self._seed = rows, block_rows, seed
        self._start, self._stop = rank * len(rows) // ranks, (rank + 1) * len(rows) // ranks
        self._lacks_one = (self._stop - self._start) * ranks < len(rows)
        self._repeated = self._start % max(1, len(rows))

    def number_of_blocks(self) -> int:
        return -(-(self._stop - self._start + self._lacks_one) // self._block_rows)

    def block(self, number: int) -> numpy.ndarray:
        start = self._start + number * self._block_rows
        rows = self._own(number)
        if self._lacks_one and start <= self._stop < start + self._block_rows:
            rows = numpy.append(rows, self._rows.numbers(self._repeated, self._repeated + 1))
        return rows

    def _own(self, number: int) -> numpy.ndarray:
        """Returns a block without the repeated row."""
        start = self._start + number * self._block_rows
        rows = self._rows.numbers(start, min(start + self._block_rows, self._stop))
        if self._seed is not None:
            numpy.random.default_rng([*self._seed, number]).shuffle(rows)
        return rows

    def rest(self, done: int) -> list[_Piece]:
        """Returns the pieces that are left after the first `done` rows."""
        number, used = divmod(done, self._block_rows)
        next_block = self._start + (number + 1) * self._block_rows
        return [self._own(number)[used:], *self._rows.cut(next_block, self._stop)]
