"""The distribution of the rows of files over ranks. Runs in one process, which plays all ranks."""

import json
import random
from collections import Counter

import numpy
import pytest

from horovod.data import elastic_rows
from horovod.data.elastic_rows import ElasticRows


@pytest.fixture
def be(monkeypatch):
    """Sets the number of ranks, and which one this is."""

    def go(rank, size):
        monkeypatch.setattr("horovod.elastic.cursor.rank", lambda: rank)
        monkeypatch.setattr("horovod.elastic.cursor.size", lambda: size)

    go(0, 1)
    return go


def rows_of(rows):
    return numpy.concatenate([numpy.empty(0, int), *rows.blocks()]).tolist()


def test_order_of_the_table_without_shuffling(be):
    for rank, expected in enumerate([[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]]):
        be(rank, 3)
        rows = ElasticRows([4, 5, 1], block_rows=2, shuffle=False)
        assert rows_of(rows) == (expected if rank == 2 else [*expected, expected[0]])
        assert len(rows) == 4


def test_order_is_random_but_repeats_itself(be):
    rows, same, other = (ElasticRows([1000, 1000], 500, seed=seed) for seed in (1, 1, 2))
    first = rows_of(rows)
    assert sorted(first) == list(range(2000)) and first == rows_of(same) == rows_of(rows)
    assert len({tuple(sorted(block)) for block in rows.blocks()}) == 4
    assert rows_of(other) != first
    rows.set_epoch(1)
    assert sorted(rows_of(rows)) == list(range(2000)) and rows_of(rows) != first
    rows.set_epoch(0)
    assert rows_of(rows) == first


def test_block_is_of_rows_that_lie_together(be):
    rows = ElasticRows([100] * 50, block_rows=100)
    for block in rows.blocks():
        assert block.max() - block.min() < 100


@pytest.mark.parametrize("seed", range(200))
def test_every_row_counts_once_whatever_happens(be, seed):
    """Random tables, batches, and worlds that come and go, with commits and restores."""
    rng = random.Random(seed)
    groups = [rng.choice([0, 1, 3, 10, 57]) for _ in range(rng.randint(1, 9))] + [rng.randint(1, 20)]
    batch = rng.randint(1, 9)
    block, shuffle = batch * rng.randint(1, 4), rng.random() < 0.8
    state, counts, largest = None, Counter(), 1
    for _ in range(100):
        size = rng.randint(1, 6)
        ranks = []
        for rank in range(size):
            be(rank, size)
            ranks.append(ElasticRows(groups, block, shuffle, seed))
            ranks[-1].set_epoch(3)
            if state:
                ranks[-1].load_state_dict(json.loads(json.dumps(state)))
        shares = [rows_of(rows) for rows in ranks]
        assert {len(share) for share in shares} == {len(ranks[0])}
        steps = -(-len(shares[0]) // batch)
        done = rng.choice([rng.randint(0, steps), steps if rng.random() < 0.2 else 0])
        for step in range(done):
            for share, rows in zip(shares, ranks):
                used = share[step * batch : (step + 1) * batch]
                counts.update(used)
                rows.record_batch(step, len(used))
        states = [rows.state_dict() for rows in ranks]
        assert all(one == states[0] for one in states)
        state, largest = states[0], max(largest, size)
        if done == steps:
            break
    else:
        return
    total = sum(groups)
    assert set(counts) == set(range(total))
    assert sum(counts.values()) - total < largest
    be(0, 2)
    ranks[0].reset()
    assert rows_of(ranks[0]) == [] and len(ranks[0]) == 0


def test_what_was_not_committed_is_dealt_again(be):
    rows = ElasticRows([20], block_rows=5)
    committed = rows.state_dict()
    before = rows_of(rows)
    rows.record_batch(0, 5)
    rows.load_state_dict(committed)
    assert rows_of(rows) == before
    rows.record_batch(0, 5)
    assert rows_of(rows) == before  # until it is dealt again
    rows.reset()
    assert sorted(rows_of(rows)) == sorted(before[5:])


def test_rank_reads_a_part_of_the_groups(be):
    touched = []
    for rank in range(4):
        be(rank, 4)
        touched.append({row // 100 for row in rows_of(ElasticRows([100] * 40, 100))})
    assert sum(map(len, touched)) == 40


def test_wrong_use_is_said():
    with pytest.raises(ValueError, match="there are no rows"):
        ElasticRows([], 1)
    with pytest.raises(ValueError, match="block_rows is 0"):
        ElasticRows([1], 0)
    assert elastic_rows._Rows([]).numbers(0, 5).tolist() == []
