"""Optimizers around other ones, whose groups and state stay shared when a state is loaded. On any number of ranks."""

import argparse
import copy
from collections import defaultdict

import pytest
import torch

import horovod.torch as hvd


class SharpnessAware(torch.optim.Optimizer):
    """Gives its groups to another optimizer, again after each load."""

    def __init__(self, params, inner):
        super().__init__(params, {"rho": 0.05, "lr": 0.1})
        self.base_optimizer = inner(self.param_groups)
        self.param_groups = self.base_optimizer.param_groups

    def step(self, closure=None):
        self.base_optimizer.step()

    def load_state_dict(self, state_dict):
        super().load_state_dict(state_dict)
        self.base_optimizer.param_groups = self.param_groups


class TakesGroups(torch.optim.Optimizer):
    """Takes the groups of another optimizer, again after each load of that one."""

    def __init__(self, params, inner):
        super().__init__(params, {})
        self.inner = inner(params)
        self.param_groups, self.defaults, self.state = self.inner.param_groups, self.inner.defaults, defaultdict(dict)

    def step(self, closure=None):
        self.inner.step()

    def state_dict(self):
        return self.inner.state_dict()

    def load_state_dict(self, state_dict):
        self.inner.load_state_dict(state_dict)
        self.param_groups = self.inner.param_groups


class TwoStates(TakesGroups):
    """Loads its own groups and the other optimizer's apart, and has the other's state under another name."""

    def __init__(self, params, inner):
        super().__init__(params, inner)
        self.fast_state = self.inner.state

    def state_dict(self):
        fast = self.inner.state_dict()
        slow = {id(p): value for p, value in self.state.items()}
        return {"fast": fast["state"], "slow": slow, "param_groups": fast["param_groups"]}

    def load_state_dict(self, state_dict):
        torch.optim.Optimizer.load_state_dict(
            self, {"state": state_dict["slow"], "param_groups": state_dict["param_groups"]}
        )
        self.inner.load_state_dict({"state": state_dict["fast"], "param_groups": state_dict["param_groups"]})
        self.fast_state = self.inner.state


class OneState(TakesGroups):
    """Has the state of the other optimizer, and keeps a part of it that the other one does not know."""

    def __init__(self, params, inner):
        super().__init__(params, inner)
        self.state = self.inner.state

    def step(self, closure=None):
        super().step()
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["slow"] = p.detach().clone()


class InAList(torch.optim.Optimizer):
    """Has one optimizer for each parameter, and their groups as a property, which each call creates again."""

    def __init__(self, params, inner):
        self._optimizer_step_pre_hooks = self._optimizer_step_post_hooks = {}  # newer torch needs them
        self.each = [inner([p]) for p in params]
        self.by_name = {"first": self.each[0].param_groups[0]}
        self.defaults = {}

    @property
    def param_groups(self):
        return [group for one in self.each for group in one.param_groups]

    @property
    def state(self):
        return {p: state for one in self.each for p, state in one.state.items()}

    def step(self, closure=None):
        for one in self.each:
            one.step()

    def zero_grad(self, set_to_none=True):
        for one in self.each:
            one.zero_grad()

    def state_dict(self):
        return {"each": [one.state_dict() for one in self.each]}

    def load_state_dict(self, state_dict):
        for one, state in zip(self.each, state_dict["each"]):
            one.load_state_dict(state)
        self.by_name = {"first": self.each[0].param_groups[0]}


KINDS = [SharpnessAware, TakesGroups, TwoStates, OneState, InAList]


def momentum(params):
    return torch.optim.SGD(params, lr=0.1, momentum=0.9)


def inner_ones(optimizer):
    own = vars(optimizer)
    return own["each"] if "each" in own else [own["inner"] if "inner" in own else own["base_optimizer"]]


def objects(optimizer):
    """The ids of all groups, lists of groups and states, under the names by which they can be reached."""
    ids = {}
    for number, each in enumerate([optimizer, *inner_ones(optimizer)]):
        ids.update(((number, "group", i), id(group)) for i, group in enumerate(each.param_groups))
        kept = [name for name in ("param_groups", "state", "fast_state") if name in vars(each)]
        ids.update(((number, name), id(vars(each)[name])) for name in kept)
        ids.update(((number, name), id(group)) for name, group in vars(each).get("by_name", {}).items())
    return ids


def load(optimizer):
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))


def broadcast(optimizer):
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)


def synced(optimizer):
    hvd.elastic.TorchState(optimizer=optimizer).sync()


def restored(optimizer):
    state = hvd.elastic.TorchState(optimizer=optimizer)
    state.save()
    state.restore()


def step(parameters, optimizer, gradient):
    optimizer.zero_grad()
    sum((p * gradient).sum() for p in parameters).backward()
    optimizer.step()


def trained(kind, wrapped, change, gradient):
    """Returns the parameters after two steps, `change`, and two steps at a tenth of the rate."""
    parameters = [torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.ones(1))]
    optimizer = kind(parameters, momentum)
    held = optimizer.param_groups
    if wrapped:
        named = [("first", parameters[0]), ("second", parameters[1])]
        optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=named)
    for _ in range(2):
        step(parameters, optimizer, gradient)
    before = objects(optimizer)
    change(optimizer)
    assert objects(optimizer) == before
    for group in held:
        group["lr"] *= 0.1
    for _ in range(2):
        step(parameters, optimizer, gradient)
    return [p.tolist() for p in parameters]


@pytest.mark.parametrize("change", [load, broadcast, synced, restored])
@pytest.mark.parametrize("kind", KINDS)
def test_a_schedule_reaches_the_inner_optimizer_after_a_load(kind, change):
    wanted = trained(kind, wrapped=False, change=lambda _: None, gradient=(1 + hvd.size()) / 2)
    assert trained(kind, wrapped=True, change=change, gradient=hvd.rank() + 1.0) == [
        pytest.approx(values) for values in wanted
    ]


@pytest.mark.parametrize("change", [broadcast, synced, restored])
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_without_a_wrapper(kind, change):
    wanted = trained(kind, wrapped=False, change=lambda _: None, gradient=1.0)
    assert trained(kind, wrapped=False, change=change, gradient=1.0) == [pytest.approx(values) for values in wanted]


class Masters(torch.optim.SGD):
    """Keeps momentum, and a copy in float32 of parameters in half precision."""

    def __init__(self, params):
        super().__init__(params, lr=0.1, momentum=0.9)

    def step(self, closure=None):
        super().step()
        self.state["all"] = {"count": torch.ones(1)}
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p].setdefault("master", p.detach().float() + 1 / 3)


def inner_states(optimizer):
    return [
        [(name, str(value.dtype), value.tolist()) for state in each.state.values() for name, value in state.items()]
        for each in inner_ones(optimizer)
    ]


@pytest.mark.parametrize("change", [broadcast, synced])
@pytest.mark.parametrize("kind", KINDS)
def test_all_ranks_get_the_state_of_inner_optimizers(kind, change):
    """Also what the outer one's state dict lacks. Rank 0 has trained, and each other one has not."""
    parameters = [torch.nn.Parameter(torch.zeros(2, dtype=torch.bfloat16)) for _ in range(2)]
    optimizer = kind(parameters, Masters)
    if hvd.rank() == 0:
        step(parameters, optimizer, 1.0)
    change(optimizer)
    states = hvd.allgather_object(inner_states(optimizer))
    assert states == [states[0]] * hvd.size() and any("torch.float32" in str(state) for state in states[0])


@pytest.mark.parametrize("before", [0, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_inner_optimizers_are_restored(kind, before):
    """`before`: the number of steps before the save."""
    parameters = [torch.nn.Parameter(torch.zeros(2, dtype=torch.bfloat16)) for _ in range(2)]
    optimizer = kind(parameters, Masters)
    for _ in range(before):
        step(parameters, optimizer, 1.0)
    state = hvd.elastic.TorchState(optimizer=optimizer)
    saved = inner_states(optimizer)
    step(parameters, optimizer, 2.0)
    assert inner_states(optimizer) != saved
    state.restore()
    assert inner_states(optimizer) == saved


def test_other_objects_in_an_optimizer_are_not_optimizers():
    class Model(torch.nn.Linear):
        def param_groups(self):
            return [{"params": list(self.parameters())}]

    class Knows(torch.optim.SGD):
        def __init__(self, model):
            super().__init__(model.param_groups(), lr=0.1, momentum=0.9)
            self.model, self.config = model, argparse.Namespace(param_groups=[{"lr": 0.1}])

    model = Model(1, 1)
    optimizer = hvd.DistributedOptimizer(Knows(model), named_parameters=model.named_parameters())
    step(list(model.parameters()), optimizer, hvd.rank() + 1.0)
    held = copy.copy(optimizer.config.param_groups)
    broadcast(optimizer)
    restored(optimizer)
    assert optimizer.config.param_groups == held and "model" in vars(optimizer)


def test_what_only_the_load_makes_one_object_is_one_object():
    """The inner optimizer has a list of its own until the first load, as in one process."""

    class Late(SharpnessAware):
        def __init__(self, params, inner):
            super().__init__(params, inner)
            self.base_optimizer.param_groups = [dict(group) for group in self.param_groups]

    optimizer = Late([torch.nn.Parameter(torch.zeros(1))], momentum)
    (held,) = optimizer.param_groups
    restored(optimizer)
    held["lr"] = 0.7
    assert optimizer.base_optimizer.param_groups is optimizer.param_groups
    assert [group["lr"] for group in optimizer.base_optimizer.param_groups] == [0.7]


def test_groups_that_a_load_adds_or_drops():
    class Grows(torch.optim.SGD):
        def load_state_dict(self, state_dict):
            del self.param_groups[1:]
            more = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": 0.1} for _ in state_dict["param_groups"][1:]]
            for group in more:
                self.add_param_group(group)
            super().load_state_dict(state_dict)

    saved = Grows([{"params": [torch.nn.Parameter(torch.zeros(1))]} for _ in range(3)], lr=0.5).state_dict()
    optimizer = Grows([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    groups, (held,) = optimizer.param_groups, optimizer.param_groups
    restore = hvd.DistributedOptimizer(optimizer)
    restore.load_state_dict(saved)
    assert restore.param_groups is groups and groups[0] is held
    assert [group["lr"] for group in groups] == [0.5] * 3


class OwnGroups(torch.optim.Optimizer):
    """Has an optimizer whose groups are not its own."""

    def __init__(self, params):
        super().__init__(params, {"lr": 1.0})
        self.inner = torch.optim.SGD(params, lr=0.1)


def test_all_ranks_get_the_groups_of_inner_optimizers():
    optimizer = OwnGroups([torch.nn.Parameter(torch.zeros(1))])
    optimizer.inner.param_groups[0]["lr"] = 0.1 / (1 + hvd.rank())
    hvd.broadcast_optimizer_state(optimizer, hvd.size() - 1)
    assert optimizer.inner.param_groups[0]["lr"] == 0.1 / hvd.size()


class ListOfStates(OwnGroups):
    """Has a list as its state dict."""

    def state_dict(self):
        return [super().state_dict(), self.inner.state_dict()]

    def load_state_dict(self, state_dict):
        super().load_state_dict(state_dict[0])
        self.inner.load_state_dict(state_dict[1])


def test_a_state_dict_may_be_a_list():
    optimizer = ListOfStates([torch.nn.Parameter(torch.zeros(1))])
    state = hvd.elastic.TorchState(optimizer=optimizer)
    state.save()
    optimizer.inner.param_groups[0]["lr"] = 7.0
    state.restore()
    assert optimizer.inner.param_groups[0]["lr"] == 0.1
