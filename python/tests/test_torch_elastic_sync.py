"""sync of a TorchState: all ranks get what rank 0 has. Runs on any number of ranks."""

import copy

import pytest
import torch

import horovod.torch as hvd
from elastic_training import assert_equal, snapshot, step, training
from horovod.common import ops
from horovod.elastic import commit_protocol
from horovod.elastic import stream as _stream


def test_sync_gives_all_ranks_what_rank_0_has_now():
    model, optimizer = training()
    sampler = hvd.elastic.ElasticSampler(list(range(40)))
    state = hvd.elastic.TorchState(model, optimizer, sampler=sampler, batch=0)
    state.batch = 10 + hvd.rank()
    sampler.processed_num = 4 * (hvd.rank() + 1)
    with torch.no_grad():
        model.weight.fill_(hvd.rank())
    optimizer.param_groups[0]["lr"] = 1.0 + hvd.rank()
    state.sync()
    assert state.batch == 10 and sampler.processed_num == 4
    assert (model.weight == 0).all() and optimizer.param_groups[0]["lr"] == 1.0
    with torch.no_grad():
        model.weight.fill_(5)
    state.restore()  # sync saves
    assert (model.weight == 0).all() and state.batch == 10


def test_sync_gives_newcomers_any_optimizers_state():
    """Several models and optimizers of several kinds; only rank 0 has trained."""
    torch.manual_seed(hvd.rank())
    models = [torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 2)) for _ in "ab"]
    kinds = [torch.optim.SGD, torch.optim.Adam]
    optimizers = [
        kind(model.parameters(), lr=0.1, **more)
        for kind, model, more in zip(kinds, models, [dict(momentum=0.9), dict(amsgrad=True)])
    ]
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizers[0], [1, 1, 3])
    state = hvd.elastic.TorchState(
        model=models[0], second=models[1], first=optimizers[0], other=optimizers[1], lr=scheduler
    )
    if hvd.rank() == 0:
        for _ in range(3):
            for model, optimizer in zip(models, optimizers):
                step(model, optimizer)
            scheduler.step()
    state.sync()
    mine = [snapshot(*pair) for pair in zip(models, optimizers)]
    for theirs in hvd.allgather_object((mine, scheduler.state_dict())):
        assert_equal(theirs, (mine, scheduler.state_dict()))
    assert mine[0][1][3]["momentum_buffer"].abs().sum() > 0 and scheduler.last_epoch == 3
    for model, optimizer in zip(models, optimizers):
        step(model, optimizer)
    state.restore()
    assert_equal([snapshot(*pair) for pair in zip(models, optimizers)], mine)


@pytest.mark.parametrize("group_bytes", [64 << 20, 300, 1])
def test_sync_of_tensors_of_all_kinds(monkeypatch, group_bytes):
    """Large and small ones, of any layout, type and emptiness; in one operation and in many."""
    monkeypatch.setattr(_stream, "_GROUP_BYTES", group_bytes)
    torch.manual_seed(hvd.rank())
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 5, 3), torch.nn.BatchNorm2d(5))
    model.to(memory_format=torch.channels_last)
    model.register_parameter("large", torch.nn.Parameter(torch.randn(1000, 7)))
    model.register_buffer("nothing", torch.zeros(0, 3))
    model.register_buffer("expanded", torch.full((1,), float(hvd.rank())).expand(4))
    model.register_buffer("half_precise", torch.randn(33).to(torch.bfloat16))
    model.register_buffer("conjugated", torch.randn(9, dtype=torch.complex64).conj())
    model.register_buffer("flag", torch.tensor(hvd.rank() == 0))
    model.tied = torch.nn.Linear(4, 4)
    model.other = torch.nn.Linear(4, 4)
    model.other.weight = model.tied.weight
    if hvd.rank() != 0:
        model.expanded = model.expanded.clone()  # can be written to
    state = hvd.elastic.TorchState(model, values=torch.randn(3))
    state.sync()
    mine = (copy.deepcopy(dict(model.state_dict())), state.values)
    for theirs in hvd.allgather_object(mine):
        assert_equal(theirs, mine)
    assert model.flag and model.other.weight is model.tied.weight


def test_sync_and_restore_use_the_memory_that_is_there():
    model, optimizer = training()
    step(model, optimizer)
    state = hvd.elastic.TorchState(model, optimizer)

    def places():
        state_of = optimizer.state_dict()["state"]
        tensors = [v for each in state_of.values() for v in each.values() if torch.is_tensor(v)]
        return [tensor.data_ptr() for tensor in [*model.parameters(), *tensors]]

    before = places()
    state.sync()
    assert places() == before
    state.commit()
    committed = snapshot(model, optimizer)
    step(model, optimizer)
    state.restore()
    assert places() == before
    assert_equal(snapshot(model, optimizer), committed)


def test_sync_and_restore_of_an_optimizer_that_loads_in_a_way_of_its_own():
    class Doubling(torch.optim.SGD):
        def load_state_dict(self, state_dict):
            seen.append(state_dict["state"][0]["momentum_buffer"] + 0)
            super().load_state_dict(state_dict)

    seen = []
    model = torch.nn.Linear(3, 2)
    optimizer = Doubling(model.parameters(), lr=0.1, momentum=0.9)
    state = hvd.elastic.TorchState(model, optimizer)
    model(torch.full((1, 3), 1.0 + hvd.rank())).sum().backward()
    optimizer.step()
    state.sync()
    expected = copy.deepcopy(optimizer.state_dict()["state"])
    for theirs in hvd.allgather_object(expected):
        assert_equal(theirs, expected)
    optimizer.step()
    state.restore()
    assert_equal(optimizer.state_dict()["state"], expected)
    assert all(torch.equal(tensor, expected[0]["momentum_buffer"]) for tensor in seen)


@pytest.mark.several_ranks
def test_sync_takes_a_handful_of_collectives(monkeypatch):
    model = torch.nn.Sequential(*(torch.nn.Linear(9, 9) for _ in range(20)))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 9)).sum().backward()
    optimizer.step()
    state = hvd.elastic.TorchState(model, optimizer, batch=0)
    submitted = []
    submit = ops.submit

    def counted(*args, **options):
        submitted.append(1)
        return submit(*args, **options)

    monkeypatch.setattr(ops, "submit", counted)
    commit_protocol.synchronize(state)
    assert len(submitted) <= 4
