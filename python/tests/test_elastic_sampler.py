"""ElasticSampler and ElasticIterableDataset through changes of the world, which the test makes up.
In one process."""

import functools
import random
import types
import warnings

import pytest
import torch

from horovod.data.elastic_rows import ElasticRows
from horovod.elastic import cursor as _cursor
from horovod.elastic import loop as hvd_loop
from horovod.torch.elastic import ElasticIterableDataset, ElasticSampler, TorchState


class World:
    """The ranks of one job, each with a separate cursor."""

    def __init__(self, monkeypatch, make, size):
        self._make, self.cursors = make, []
        self.rank = self.size = 0
        monkeypatch.setattr(_cursor, "rank", lambda: self.rank)
        monkeypatch.setattr(_cursor, "size", lambda: self.size)
        self.resize(size, None)

    def resize(self, size, progress):
        """Some go, some come; all get `progress`, as by a sync."""
        survivors = self.cursors[: min(size, len(self.cursors))]
        self.size, self.cursors = size, survivors
        while len(self.cursors) < size:
            self.cursors.append(self._make())
        for rank, cursor in enumerate(self.cursors):
            self.rank = rank
            cursor.load_state_dict(progress) if progress else cursor.reset()

    def batches(self, batch_size):
        """For each step what each rank works on, to the end of the epoch."""
        dealt = [list(cursor) for cursor in self.cursors]
        assert len({len(items) for items in dealt}) == 1  # else some would wait for others
        for start in range(0, len(dealt[0]), batch_size):
            yield [items[start : start + batch_size] for items in dealt]


def make_sampler(length):
    return lambda: ElasticSampler(range(length))


def make_iterable(length):
    return lambda: ElasticIterableDataset(range(length))


def epoch_with_changes(world, choose, length):
    """Works through an epoch amid commits, failures and changes; returns what was committed, and by
    how many ranks at last."""
    size, committed, uncommitted, progress = 0, [], [], world.cursors[0].state_dict()
    while True:
        batch_size = choose.randint(1, 5)
        changed = False
        for index, batch in enumerate(world.batches(batch_size)):
            uncommitted += [item for items in batch for item in items]
            for cursor in world.cursors:
                cursor.record_batch(index, batch_size)
            what = choose.random()
            if what < 0.4:
                committed += uncommitted
                uncommitted, progress, size = [], world.cursors[0].state_dict(), world.size
            if what < 0.1 or what > 0.9:  # a planned change, at a commit, or a failure
                changed, uncommitted = True, []
                world.resize(choose.randint(1, 5), progress)
                break
        if not changed:
            committed += uncommitted
            size = world.size if uncommitted else size
            assert all(c.processed_num >= length for c in world.cursors)
            return committed, size


@pytest.mark.parametrize("make", [make_sampler, make_iterable])
def test_each_index_is_committed_once_whatever_happens(make, monkeypatch):
    for seed in range(100):
        choose = random.Random(seed)
        length = choose.randint(0, 60)
        world = World(monkeypatch, make(length), choose.randint(1, 5))
        for epoch in range(2):
            committed, size = epoch_with_changes(world, choose, length)
            repeated = len(committed) - len(set(committed))
            assert set(committed) == set(range(length)), seed
            assert repeated < max(size, 1), seed
            for rank, cursor in enumerate(world.cursors):
                world.rank = rank
                cursor.set_epoch(epoch + 1)


def test_reset_of_the_state_deals_again_without_a_sync(monkeypatch):
    world = World(monkeypatch, make_sampler(10), 2)
    sampler = world.cursors[0]
    state, seen = TorchState(sampler=sampler), []
    state.register_reset_callbacks([lambda: seen.append(len(sampler))])
    world.rank, world.size = 0, 1
    state.on_reset()
    assert seen == [10] and len(list(sampler)) == 10


def test_nothing_is_left_of_an_epoch_that_is_recorded(monkeypatch):
    world = World(monkeypatch, make_sampler(10), 2)
    sampler = world.cursors[0]
    for index in range(2):
        sampler.record_batch(index, 4)  # 16: the last batch was shorter
    sampler.reset()
    assert sampler.remaining_indices == [] and list(sampler) == [] and len(sampler) == 0
    with pytest.warns(UserWarning, match="all of epoch 0 is recorded as processed. Call set_epoch"):
        assert list(sampler) == []
    sampler.set_epoch(1)
    assert len(list(sampler)) == 5


def test_loop_without_set_epoch_trains_on_the_same_samples_again(monkeypatch):
    world = World(monkeypatch, make_sampler(64), 2)
    sampler = world.cursors[0]
    loader = torch.utils.data.DataLoader(range(64), batch_size=4, sampler=sampler)
    epochs = []
    for _ in range(3):
        lengths, samples = set(), []
        for index, batch in enumerate(loader):
            sampler.record_batch(index, len(batch))
            lengths.add(len(loader))
            samples += batch.tolist()
        assert lengths == {8} and len(loader) == 8
        epochs.append(samples)
    assert epochs[0] == epochs[1] == epochs[2] and len(epochs[0]) == 32


def test_progress_is_one_number_for_all(monkeypatch):
    world = World(monkeypatch, make_sampler(100), 4)
    for cursor in world.cursors:
        cursor.record_batch(0, 5)
    states = [cursor.state_dict() for cursor in world.cursors]
    assert states == [{"epoch": 0, "processed_num": 20}] * 4


def test_shuffled_order_is_the_same_everywhere_and_another_each_epoch(monkeypatch):
    world = World(monkeypatch, make_sampler(50), 2)
    orders = [cursor.remaining_indices for cursor in world.cursors]
    assert orders[0] == orders[1] != list(range(50))
    world.cursors[0].set_epoch(1)
    assert world.cursors[0].remaining_indices != orders[0]
    assert ElasticSampler(range(5), shuffle=False).remaining_indices == [0, 1, 2, 3, 4]


def test_iterable_with_loader(monkeypatch):
    World(monkeypatch, make_iterable(0), 1)
    dataset = ElasticIterableDataset(range(10))
    dataset.load_state_dict({"epoch": 0, "processed_num": 4})
    for workers in (0, 1):
        loader = torch.utils.data.DataLoader(dataset, batch_size=4, num_workers=workers)
        assert [batch.tolist() for batch in loader] == [[4, 5, 6, 7], [8, 9]]
    two = types.SimpleNamespace(num_workers=2)
    monkeypatch.setattr(torch.utils.data, "get_worker_info", lambda: two)
    with pytest.raises(ValueError, match="num_workers=0 or 1"):
        iter(dataset)


def test_iterable_gets_the_epoch(monkeypatch):
    World(monkeypatch, make_iterable(0), 1)

    class Source:
        def set_epoch(self, epoch):
            self.epoch = epoch

        def __iter__(self):
            return iter(range(10 * self.epoch, 10 * self.epoch + 3))

    dataset = ElasticIterableDataset(Source())
    assert list(dataset) == [0, 1, 2]
    dataset.set_epoch(2)
    assert list(dataset) == [20, 21, 22]


class Rules:
    """A model of the observable behaviour of Horovod's sampler, for one rank of a world."""

    def __init__(self, length, order, world, rank):
        self._length, self._order = length, order  # epoch -> indices
        self.epoch = self.processed_num = 0
        self.deal(world, rank)

    def deal(self, world, rank):
        """Only here what is dealt changes."""
        self.size, self.rank = world, rank
        self.remaining = self._order(self.epoch)[self.processed_num :]
        self.each = -(-len(self.remaining) // self.size)

    def record(self, batch_size):
        self.processed_num += batch_size * self.size

    def go_to(self, epoch, processed_num):
        self.epoch, self.processed_num = epoch, processed_num
        self.deal(self.size, self.rank)

    def mine(self):
        """A sampler's: what is missing at the end is taken from the front."""
        return [self.remaining[(row * self.size + self.rank) % len(self.remaining)] for row in range(self.each)]

    def mine_of_a_stream(self):
        """The front of a stream is gone: what is missing is taken from the last row."""
        rows = [self.remaining[i : i + self.size] for i in range(0, len(self.remaining), self.size)]
        return [row[self.rank % len(row)] for row in rows]


def check_sampler(sampler, rules):
    assert len(sampler) == sampler.num_samples == rules.each
    assert sampler.total_size == rules.each * rules.size
    assert sampler.remaining_indices == rules.remaining
    assert (sampler.num_replicas, sampler.rank) == (rules.size, rules.rank)
    check_progress(sampler, rules)


def check_progress(cursor, rules):
    progress = {"epoch": rules.epoch, "processed_num": rules.processed_num}
    assert cursor.state_dict() == progress
    assert (cursor.epoch, cursor.processed_num) == (rules.epoch, rules.processed_num)


def do_something(choose, world, pairs, kept):
    """Does one thing that a loop may do, to all ranks' cursors and to the rules."""
    what = choose.choice(["record", "record", "record", "epoch", "keep", "load", "reset", "resize"])
    number = choose.randint(0, 6)
    if what == "keep":
        kept.append(pairs[0][0].state_dict())
    if what == "resize":
        world.size = choose.randint(max(1, len(pairs)), 6)
    for world.rank, (cursor, rules) in enumerate(pairs):
        if what == "record":
            cursor.record_batch(number, number)
            rules.record(number)
        elif what == "epoch":
            cursor.set_epoch(number)
            rules.size = world.size
            rules.go_to(number, 0)
        elif what == "load":
            cursor.load_state_dict(kept[-1])
            rules.go_to(**kept[-1])
        elif what in ("reset", "resize"):
            cursor.reset()
            rules.deal(world.size, world.rank)


def test_second_pass_over_a_recorded_epoch_warns():
    sampler = ElasticSampler(range(4))
    for _ in range(2):
        assert len(list(sampler)) == 4  # nothing is recorded
    sampler.record_batch(0, 4)
    with pytest.warns(UserWarning, match="deals epoch 0 again, .* Call set_epoch") as caught:
        assert len(list(sampler)) == 4
    assert caught[0].filename == __file__
    sampler.set_epoch(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(sampler)) == 4
    sampler.record_batch(0, 4)
    sampler.reset()  # as in a new world
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(sampler) == []
    with pytest.warns(UserWarning, match="nothing to deal: all of epoch 1"):
        assert list(sampler) == []


def record_two_batches(cursor, state):
    """In a run; returns the warnings."""

    @hvd_loop.run
    def train(state):
        for index in range(2):
            cursor.record_batch(index, 1)
            state.commit()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train(state)
    assert all(warning.filename == __file__ for warning in caught)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("make", [make_sampler(4), make_iterable(4), lambda: ElasticRows([4], 1)])
def test_one_that_is_in_no_state_warns_once(make):
    cursor = make()
    TorchState(sampler=cursor).commit()  # a state of no run
    [text] = record_two_batches(cursor, TorchState(epoch=0))
    assert text.startswith(f"{type(cursor).__name__} is in no state: ")
    assert text.endswith("Give it to the state of the run, as in TorchState(..., sampler=sampler).")
    for of_state in ({"sampler": make()}, {"samplers": [make()]}):
        state = TorchState(**of_state)
        cursor = of_state.get("sampler") or of_state["samplers"][0]
        assert record_two_batches(cursor, state) == []


@pytest.mark.filterwarnings("ignore:ElasticSampler")
@pytest.mark.parametrize("shuffle", [False, True])
def test_sampler_is_horovods_whatever_the_order_of_calls(shuffle, monkeypatch):
    for seed in range(150):
        choose = random.Random(seed)
        length = choose.randint(0, 40)
        make = functools.partial(ElasticSampler, range(length), shuffle, seed)
        world = World(monkeypatch, make, choose.randint(1, 5))
        orders = [ElasticSampler(range(length), shuffle, seed + epoch) for epoch in range(7)]
        orders = [each.remaining_indices for each in orders]
        pairs = [
            (cursor, Rules(length, orders.__getitem__, world.size, world.rank))
            for world.rank, cursor in enumerate(world.cursors)
        ]
        kept, begun = [pairs[0][0].state_dict()], []
        for _ in range(40):
            do_something(choose, world, pairs, kept)
            for sampler, rules in pairs:
                check_sampler(sampler, rules)
                assert list(sampler) == list(sampler) == rules.mine()
            begun.append((iter(pairs[0][0]), pairs[0][1].mine()))
        for iterator, expected in begun:  # whatever came after it
            assert list(iterator) == expected


def test_stream_is_dealt_by_the_same_rules(monkeypatch):
    for seed in range(150):
        choose = random.Random(seed)
        length = choose.randint(0, 40)
        world = World(monkeypatch, make_iterable(length), choose.randint(1, 5))
        pairs = [
            (cursor, Rules(length, lambda epoch, length=length: list(range(length)), world.size, world.rank))
            for world.rank, cursor in enumerate(world.cursors)
        ]
        kept = [pairs[0][0].state_dict()]
        for _ in range(40):
            do_something(choose, world, pairs, kept)
            for dataset, rules in pairs:
                check_progress(dataset, rules)
                assert list(dataset) == list(dataset) == rules.mine_of_a_stream()
