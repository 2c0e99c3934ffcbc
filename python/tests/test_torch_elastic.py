"""hvd.elastic in a world that stays: commit, restore, sync, the loop and the sampler. Runs on any
number of ranks."""

import copy

import pytest
import torch

import horovod.torch as hvd
from horovod.common import ops
from horovod.common.elastic import notification_manager
from horovod.common.exceptions import (
    HorovodInternalError,
    HorovodRequestError,
    HostsUpdatedInterrupt,
)
from horovod.elastic import commits
from horovod.elastic import stream as _stream
from horovod.torch.elastic.state import (
    StateHandler,
    get_handler_registry,
    set_handler_registry,
)


def training():
    model = torch.nn.Linear(3, 2)
    hvd.broadcast_parameters(model.state_dict(), 0)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.Adam(model.parameters(), lr=0.1), named_parameters=model.named_parameters()
    )
    return model, optimizer


def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.ones(4, 3)).pow(2).sum().backward()
    optimizer.step()


def snapshot(model, optimizer):
    return copy.deepcopy((model.state_dict(), optimizer.state_dict()["state"]))


def assert_equal(a, b):
    if isinstance(a, torch.Tensor):
        assert torch.equal(a, b)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_equal(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        for x, y in zip(a, b):
            assert_equal(x, y)
    else:
        assert a == b


def test_restore_gives_exactly_the_last_commit():
    model, optimizer = training()
    state = hvd.elastic.TorchState(model, optimizer, batch=0, history=[])
    for batch in range(3):
        step(model, optimizer)
        state.batch = batch
        state.history.append(batch)
        state.commit()
    committed = snapshot(model, optimizer)
    for _ in range(2):  # what a restore gave must not change the copy
        step(model, optimizer)
        state.batch = 9
        state.history.append(9)
        state.restore()
        assert_equal(snapshot(model, optimizer), committed)
        assert state.batch == 2 and state.history == [0, 1, 2]


def test_interrupted_save_leaves_the_last_commit():
    model, optimizer = training()
    state = hvd.elastic.TorchState(model, optimizer, value=1)
    state.commit()
    committed = snapshot(model, optimizer)
    step(model, optimizer)
    state.value = (n for n in range(3))  # can't be copied
    with pytest.raises(TypeError):
        state.commit()
    state.restore()
    assert_equal(snapshot(model, optimizer), committed)
    assert state.value == 1


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
    state._sync_in_loop()
    assert len(submitted) <= 4


def test_restore_drops_what_a_broken_step_left():
    model, optimizer = training()
    state = hvd.elastic.TorchState(model, optimizer)
    model(torch.ones(4, 3)).sum().backward()
    state.restore()
    assert all((p.grad == 0).all() for p in model.parameters())
    step(model, optimizer)


def test_restore_keeps_the_type_of_odd_values():
    """Bit for bit, and whatever torch's optimizers and schedulers put into their state."""
    model = torch.nn.BatchNorm1d(4).to(torch.float64)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([float("nan"), -0.0, float("inf"), 5e-324]))
    expected = model.weight.detach().clone().view(torch.int64)
    state = hvd.elastic.TorchState(model)
    state.commit()
    with torch.no_grad():
        model.weight.zero_()
    state.restore()
    assert torch.equal(model.weight.detach().view(torch.int64), expected)


def test_commit_numbers_are_the_same_on_all_ranks():
    state = hvd.elastic.ObjectState(epoch=0)
    before = commits.newest()
    for _ in range(3):
        state.commit()
    assert set(hvd.allgather_object(commits.newest())) == {before + 3}


def test_assigning_a_handled_value():
    model, optimizer = training()
    state = hvd.elastic.TorchState(model, optimizer)
    other = torch.nn.Linear(3, 2)
    state.model = other
    saved = other.weight.detach().clone()
    with torch.no_grad():
        other.weight.zero_()
    state.restore()
    assert state.model is other and torch.equal(other.weight, saved)


def test_object_state():
    state = hvd.elastic.ObjectState(epoch=0, names=["a"])
    state.epoch, state.names = 3, ["b"]
    state.save()
    state.names.append("c")
    state.restore()
    assert (state.epoch, state.names) == (3, ["b"])


def test_run_returns_what_the_function_returns():
    model, optimizer = training()

    @hvd.elastic.run
    def train(state, steps):
        for batch in range(state.batch, steps):
            state.batch = batch
            step(state.model, state.optimizer)
            state.commit()
        return state.batch

    assert train(hvd.elastic.TorchState(model, optimizer, batch=0), 4) == 3


@pytest.mark.parametrize("error", [HorovodInternalError, HostsUpdatedInterrupt])
def test_run_starts_again(error):
    """After a failure from the last commit; after a change of hosts from where it was. In a new
    world each time."""
    model, optimizer = training()
    state = hvd.elastic.TorchState(model, optimizer, batch=0, resets=0)
    state.register_reset_callbacks([lambda: seen.append("reset")])
    seen = []

    @hvd.elastic.run
    def train(state):
        seen.append(state.batch)
        if len(seen) > 1:
            return
        for state.batch in range(5):
            step(model, optimizer)
            if state.batch == 2:
                state.commit()
        if error is HostsUpdatedInterrupt:
            notification_manager.handle_hosts_updated(1.0, 1)
            state.commit()  # raises
        raise error()

    train(state)
    assert seen == [0, "reset", 2 if error is HorovodInternalError else 4]
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == hvd.size()


@pytest.mark.parametrize("error", [HorovodRequestError, ValueError])
def test_run_does_not_repeat_what_would_fail_again(error):
    calls = []

    @hvd.elastic.run
    def train(state):
        calls.append(1)
        raise error("no")

    with pytest.raises(error):
        train(hvd.elastic.ObjectState(epoch=0))
    assert len(calls) == 1


def test_notification_interrupts_the_next_commit():
    state = hvd.elastic.ObjectState(epoch=0)
    state.commit()
    notification_manager.register_listener(state)
    notification_manager.handle_hosts_updated(1.0, 1)
    notification_manager.remove_listener(state)
    with pytest.raises(HostsUpdatedInterrupt) as caught:
        state.commit()
    assert caught.value.skip_sync is False
    state.on_reset()
    state.commit()


def test_handler_registry():
    class Counter:
        count = 0

    class Handler(StateHandler):
        def __init__(self, value):
            super().__init__(value)
            self.save()

        def save(self):
            self.saved = self.value.count

        def restore(self):
            self.value.count = self.saved

        def sync(self):
            self.value.count = hvd.broadcast_object(self.value.count)

    before = get_handler_registry()
    set_handler_registry([(Counter, Handler)] + list(before))
    try:
        state = hvd.elastic.TorchState(counter=Counter())
        state.counter.count = 4 + hvd.rank()
        state.sync()
        assert state.counter.count == 4
        state.counter.count = 7
        state.restore()
        assert state.counter.count == 4
    finally:
        set_handler_registry(before)


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
