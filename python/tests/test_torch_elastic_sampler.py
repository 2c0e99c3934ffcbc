"""ElasticSampler, alone and in a TorchState, in a world that stays. Runs on any number of ranks."""

import warnings

import pytest
import torch
from torch.utils.data.distributed import DistributedSampler

import horovod.torch as hvd
from horovod.torch.elastic import _old_samplers

BATCH = 2
OF_EACH = 8  # samples a rank gets of a whole epoch


@pytest.fixture
def loop():
    """A sampler, a loader that uses it, and a state that tracks it."""
    data = torch.arange(OF_EACH * hvd.size())
    sampler = hvd.elastic.ElasticSampler(data)
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH, sampler=sampler)
    state = hvd.elastic.TorchState(sampler=sampler)
    state.sync()
    return sampler, loader, state


def everyones(samples):
    return [sample for part in hvd.allgather_object(samples) for sample in part]


class Stateful(DistributedSampler):
    """A sampler with a state of its own."""

    read = 0

    def state_dict(self):
        return {"read": self.read}

    def load_state_dict(self, state_dict):
        self.read = state_dict["read"]


@pytest.mark.parametrize("kind, name", [(DistributedSampler, "epoch"), (Stateful, "read")])
def test_sampler_of_torch_stays_and_gets_its_progress(kind, name):
    dataset = torch.utils.data.TensorDataset(torch.zeros(8, 1))  # a state would refuse to copy it
    sampler = kind(dataset, num_replicas=hvd.size(), rank=hvd.rank())
    setattr(sampler, name, 3 + hvd.rank())
    state = hvd.elastic.TorchState(sampler=sampler)
    state.sync()
    assert getattr(sampler, name) == 3 and sampler.rank == hvd.rank()
    setattr(sampler, name, 7)
    state.restore()
    assert getattr(sampler, name) == 3 and state.sampler is sampler and sampler.dataset is dataset


class Loader:
    """Stands for a loader of torchdata, which has a state of its own."""

    def __init__(self, sampler):
        self.sampler = sampler

    def state_dict(self):
        return {}

    def load_state_dict(self, state_dict):
        pass


@pytest.mark.parametrize("within", [lambda sampler: sampler, Loader, lambda sampler: [sampler]])
@pytest.mark.parametrize(
    "ranks, remedy, warns",
    [
        (0, None, True),
        (0, lambda sampler: setattr(sampler, "num_replicas", hvd.size() + 1), False),
        (5, None, False),  # it was for others from the start
    ],
)
def test_a_sampler_of_torch_for_a_former_world_causes_a_warning(monkeypatch, within, ranks, remedy, warns):
    sampler = DistributedSampler(range(8), num_replicas=ranks or hvd.size(), rank=hvd.rank() % 5)
    state = hvd.elastic.TorchState(data=within(sampler))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        state.commit()
        assert not caught
        larger = hvd.size() + 1
        monkeypatch.setattr(_old_samplers, "size", lambda: larger)
        if remedy is not None:
            remedy(sampler)
        for _ in range(2):
            state._samplers._world = None  # as in another one
            state.commit()
    text = f"still deals an epoch to {hvd.size()} ranks, but the world has {larger} now"
    assert [text in str(one.message) for one in caught] == [True] * (warns and hvd.rank() == 0)


def test_length_stays_and_the_count_grows(loop):
    sampler, loader, _ = loop
    assert (sampler.epoch, sampler.processed_num) == (0, 0)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        seen = []
        for index, batch in enumerate(loader):
            assert len(sampler) == OF_EACH and len(loader) == OF_EACH // BATCH
            sampler.record_batch(index, BATCH)
            assert sampler.processed_num == BATCH * (index + 1) * hvd.size()
            seen += batch.tolist()
        assert sorted(everyones(seen)) == list(range(OF_EACH * hvd.size()))


def test_loader_repeats_itself_without_set_epoch(loop):
    sampler, loader, _ = loop
    passes = []
    for _ in range(3):
        passes.append([])
        for index, batch in enumerate(loader):
            sampler.record_batch(index, BATCH)
            passes[-1] += batch.tolist()
    assert passes[0] == passes[1] == passes[2] and len(passes[0]) == OF_EACH


def test_restore_goes_back_to_the_committed_count(loop):
    sampler, _, state = loop
    sampler.set_epoch(2)
    for index in range(2):
        sampler.record_batch(index, BATCH)
    state.commit()
    committed = sampler.processed_num
    for index in range(2, 4):
        sampler.record_batch(index, BATCH)
    assert sampler.processed_num == 2 * committed == 4 * BATCH * hvd.size()
    state.restore()
    assert sampler.processed_num == committed
    assert len(sampler) == OF_EACH - 2 * BATCH


def test_sync_deals_the_rest_on_every_rank(loop):
    """On rank 0, too, which gets nothing from others."""
    sampler, loader, state = loop
    done = []
    for index, batch in zip(range(3), loader):
        sampler.record_batch(index, BATCH)
        done += batch.tolist()
    state.commit()
    assert len(sampler) == OF_EACH
    state.sync()
    assert sampler.processed_num == 3 * BATCH * hvd.size()
    assert len(sampler) == BATCH and len(loader) == 1
    rest = [sample for batch in loader for sample in batch.tolist()]
    assert sorted(everyones(done + rest)) == list(range(OF_EACH * hvd.size()))
    sampler.set_epoch(3)
    assert len(sampler) == OF_EACH and len(list(loader)) == OF_EACH // BATCH


def test_handler_deals_the_rest_on_every_rank(loop):
    """Horovod's handlers can be used alone."""
    sampler, _, _ = loop
    from horovod.torch.elastic.state import SamplerStateHandler

    sampler.record_batch(0, BATCH)
    handler = SamplerStateHandler(sampler)
    handler.sync()
    assert len(sampler) == OF_EACH - BATCH


@pytest.mark.parametrize("shuffle", [False, True])
def test_sampler_deals_out_everything_once(shuffle):
    length = 12 * hvd.size() + 1
    sampler = hvd.elastic.ElasticSampler(list(range(length)), shuffle=shuffle)
    first = list(sampler)
    assert len(first) == len(sampler) == 13
    dealt = [i for part in hvd.allgather_object(first) for i in part]
    assert set(dealt) == set(range(length))
    for batch in range(2):
        sampler.record_batch(batch, 4)
    progress = sampler.state_dict()
    assert progress == {"epoch": 0, "processed_num": 8 * hvd.size()}
    sampler.load_state_dict(progress)
    rest = [i for part in hvd.allgather_object(list(sampler)) for i in part]
    done = [i for part in hvd.allgather_object(first[:8]) for i in part]
    assert set(rest) | set(done) == set(range(length)) and not set(rest) & set(done)


def test_sampler_epochs():
    sampler = hvd.elastic.ElasticSampler(list(range(50 * hvd.size())))
    first = list(sampler)
    sampler.record_batch(0, 10)
    sampler.set_epoch(1)
    assert sampler.processed_num == 0 and len(list(sampler)) == 50 and list(sampler) != first
