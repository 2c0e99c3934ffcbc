"""broadcast_optimizer_state leaves the state's types and the optimizer's objects as they are on the root."""

import copy

import pytest
import torch

import horovod.torch as hvd


class Mixed(torch.optim.Optimizer):
    """Keeps, for parameters in half precision, what such optimizers keep: a copy in float32, a counter, notes."""

    def __init__(self, params):
        super().__init__(params, {"lr": 0.1})

    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            state.setdefault("master", p.detach().float() + hvd.rank() / 3)
            state.setdefault("seen", torch.tensor(2**30 + hvd.rank(), dtype=torch.int64))
            state.setdefault("phase", f"warm {hvd.rank()}")
            state.setdefault("history", [torch.ones(1, dtype=torch.float64) / 3, "begun", {"last": (1, "two")}])


def described(value):
    """`value` with the type, dtype and numbers of each of its parts."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return {key: described(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [described(part) for part in value]
    return value


def check_same(optimizer):
    """All ranks have the root's state, value by value and dtype by dtype."""
    states = hvd.allgather_object(described(optimizer.state_dict()["state"]))
    assert states == [states[0]] * hvd.size()
    return states[0]


def mixed(wrapped=False):
    parameter = torch.nn.Parameter(torch.ones(3, dtype=torch.float16))
    optimizer = Mixed([parameter])
    if wrapped:
        optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=[("p", parameter)])
    parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    return optimizer


@pytest.mark.parametrize("wrapped", [False, True])
def test_types_of_state_stay(wrapped):
    optimizer = mixed(wrapped)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    state = check_same(optimizer)[0]
    assert state["master"][0] == "torch.float32"
    assert state["seen"] == ("torch.int64", 2**30)
    assert state["phase"] == "warm 0"
    assert state["history"] == ("list", [("torch.float64", [1 / 3]), "begun", {"last": ("tuple", [1, "two"])}])


@pytest.mark.parametrize("make", [torch.optim.NAdam, torch.optim.ASGD])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_torchs_own_optimizers_keep_their_dtypes(make, dtype):
    parameter = torch.nn.Parameter(torch.ones(3, dtype=dtype))
    optimizer = make([parameter], lr=0.1)
    parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    check_same(optimizer)


def test_types_of_an_elastic_state_stay():
    optimizer = mixed()
    state = hvd.elastic.TorchState(optimizer=optimizer)
    state.sync()
    before = check_same(optimizer)
    state.save()
    kept = copy.copy(optimizer.state_dict()["state"])
    optimizer.state.clear()
    state.restore()
    assert check_same(optimizer) == before == described(kept)


def test_groups_that_others_hold_stay():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(3))], lr=0.1 + hvd.rank())
    (held,) = optimizer.param_groups
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    assert held["lr"] == 0.1
    held["lr"] = 0.7
    assert [group["lr"] for group in optimizer.param_groups] == [0.7]


def test_an_optimizer_that_was_wrapped_shares_its_groups_and_state_with_the_wrapper():
    parameter = torch.nn.Parameter(torch.ones(3))
    own = torch.optim.SGD([parameter], lr=0.1, weight_decay=0.1 + hvd.rank(), momentum=0.9)
    wrapper = hvd.DistributedOptimizer(own, named_parameters=[("p", parameter)])
    parameter.grad = torch.full_like(parameter, hvd.rank())
    own.step()
    hvd.broadcast_optimizer_state(own, root_rank=0)
    assert wrapper.param_groups[0]["weight_decay"] == 0.1
    assert wrapper.state[parameter]["momentum_buffer"] is own.state[parameter]["momentum_buffer"]
    check_same(wrapper)
