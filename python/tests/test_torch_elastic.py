"""hvd.elastic in a world that stays: commit, restore, the loop and handlers. Runs on any number
of ranks."""

import pytest
import torch

import horovod.torch as hvd
from elastic_training import assert_equal, snapshot, step, training
from horovod.common.elastic import notification_manager
from horovod.common.exceptions import (
    HorovodInternalError,
    HorovodRequestError,
    HostsUpdatedInterrupt,
)
from horovod.elastic import commits
from horovod.torch.elastic.state import (
    OptimizerStateHandler,
    StateDictHandler,
    StateHandler,
    get_handler_registry,
    set_handler_registry,
)


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


def test_restore_saves_nothing(monkeypatch):
    model, optimizer = training()
    state = hvd.elastic.TorchState(model, optimizer)
    state.commit()
    saved = []
    monkeypatch.setattr(StateDictHandler, "copied", lambda handler: saved.append(handler))
    state.restore()
    assert saved == [], "it has copied the whole state to new memory, and dropped the copy"


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


def test_restore_drops_parameter_groups_that_came_later():
    model, optimizer = training()
    head = torch.nn.Linear(3, 2)
    hvd.broadcast_parameters(head.state_dict(), 0)
    state = hvd.elastic.TorchState(model, optimizer, head=head)
    step(model, optimizer)
    state.commit()
    before = snapshot(model, optimizer)
    for _ in range(2):
        optimizer.add_param_group({"params": list(head.parameters()), "lr": 0.01})
        step(torch.nn.Sequential(model, torch.nn.Linear(2, 3), head), optimizer)
        state.restore()
        assert len(optimizer.param_groups) == 1
        assert_equal(snapshot(model, optimizer), before)
        assert not any(p in optimizer.state for p in head.parameters())
    optimizer.add_param_group({"params": list(head.parameters()), "lr": 0.01})
    state.commit()
    state.restore()
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.01]
    step(model, optimizer)


def test_groups_of_the_script_are_not_dropped():
    model = torch.nn.Linear(3, 2)
    two = torch.optim.SGD([{"params": [model.weight]}, {"params": [model.bias]}], lr=0.1)
    handler = OptimizerStateHandler(two)
    with pytest.raises(ValueError, match="parameter groups"):
        handler.load(torch.optim.SGD([model.weight], lr=0.1).state_dict())
    assert len(two.param_groups) == 2


def test_restore_drops_what_a_broken_step_left():
    model, optimizer = training()
    state = hvd.elastic.TorchState(model, optimizer)
    model(torch.ones(4, 3)).sum().backward()
    state.restore()
    assert all((p.grad == 0).all() for p in model.parameters())
    step(model, optimizer)


@pytest.mark.skipif(not hasattr(torch.amp, "GradScaler"), reason="the scaler of this torch needs CUDA")
def test_restore_drops_the_step_of_a_scaler():
    model, optimizer = training()
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    state = hvd.elastic.TorchState(model, optimizer, scaler=scaler)
    for is_broken in (True, False):
        optimizer.zero_grad()
        scaler.scale(model(torch.ones(4, 3)).sum()).backward()
        scaled = [p.grad.clone() for p in model.parameters()]
        if is_broken:
            scaler.unscale_(optimizer)
            state.restore()
    scaler.step(optimizer)
    scaler.update()
    assert all(torch.equal(p.grad, grad / 4.0) for p, grad in zip(model.parameters(), scaled))


def test_disabled_scaler_is_restored():
    """Scripts disable it by an argument, and torch.cuda.amp's disables itself where there is no CUDA."""
    module = torch.amp if hasattr(torch.amp, "GradScaler") else torch.cuda.amp
    state = hvd.elastic.TorchState(torch.nn.Linear(2, 2), scaler=module.GradScaler(enabled=False), epoch=3)
    state.epoch = 4
    state.restore()
    state.sync()
    assert state.epoch == 3


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


def test_a_loss_may_be_a_value():
    model, optimizer = training()
    state = hvd.elastic.TorchState(model, optimizer, loss=0.0, losses=[], batch=0)
    loss = model(torch.ones(4, 3)).sum()
    state.loss, state.batch = loss, 1
    state.losses.append(loss)
    state.commit()
    assert state.loss is loss and loss.grad_fn is not None
    state.loss, state.losses, state.batch = 7.0, [], 2
    state.restore()
    assert state.loss == state.losses[0] == loss and state.batch == 1
    state.loss = loss
    state.sync()
    assert state.loss == loss


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


def test_subclass_may_set_attributes_first():
    class WithBest(hvd.elastic.TorchState):
        def __init__(self, *args, **kwargs):
            self.best = 1.0
            super().__init__(*args, **kwargs)

    model, optimizer = training()
    state = WithBest(model, optimizer, batch=0)
    state.commit()
    state.batch, state.best = 1, 2.0
    state.restore()
    assert state.model is model and (state.batch, state.best) == (0, 2.0)


def test_object_state():
    state = hvd.elastic.ObjectState(epoch=0, names=["a"])
    state.epoch, state.names = 3, ["b"]
    state.save()
    state.names.append("c")
    state.restore()
    assert (state.epoch, state.names) == (3, ["b"])


def test_object_state_takes_horovods_functions():
    state = hvd.elastic.ObjectState(hvd.broadcast_object, hvd.rank, epoch=hvd.rank())
    state.sync()
    assert state.epoch == 0 and isinstance(hvd.elastic.TorchState(epoch=0), hvd.elastic.ObjectState)


def test_value_without_its_name_is_refused():
    with pytest.raises(TypeError, match=r"not a dict; values are given to a state by their names, as in epoch=0$"):
        hvd.elastic.ObjectState({"epoch": 0})


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


def test_run_skips_the_sync_that_an_interrupt_says_to_skip():
    class Counting(hvd.elastic.ObjectState):
        def sync(self):
            syncs.append(self.value)
            super().sync()

    syncs = []

    @hvd.elastic.run
    def train(state):
        state.value += 1
        if state.value < 3:
            raise HostsUpdatedInterrupt(skip_sync=state.value == 1)

    train(Counting(value=0))
    of_ranks = hvd.allgather_object(syncs)
    # A rank that was still in the first synchronization when another one left it goes back, and then all synchronize.
    was_cut_off = [0, 0, 2] in of_ranks
    assert all(seen == [0, 2] for seen in of_ranks) or (was_cut_off and all(seen[-1] == 2 for seen in of_ranks))


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


def test_host_messages_are_empty_until_the_next_commit_is_interrupted():
    state = hvd.elastic.ObjectState(epoch=0)
    assert state._host_messages.empty()
    state.on_hosts_updated(1.0, 1)
    assert not state._host_messages.empty()
    with pytest.raises(HostsUpdatedInterrupt):
        state.commit()
    state.on_reset()
    assert state._host_messages.empty()


def test_notification_that_is_not_later_than_the_last_is_ignored():
    state = hvd.elastic.ObjectState(epoch=0)
    state.on_hosts_updated(2.0, 1)
    with pytest.raises(HostsUpdatedInterrupt):
        state.commit()
    state.on_reset()
    for timestamp in (0, 1.0, 2.0):
        state.on_hosts_updated(timestamp, 2)
        state.commit()
    state.on_hosts_updated(3.0, 2)
    with pytest.raises(HostsUpdatedInterrupt):
        state.check_host_updates()


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
