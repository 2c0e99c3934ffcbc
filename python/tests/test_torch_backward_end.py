"""backward() returns with reduced gradients, whatever the ranks have used. On any number of ranks."""

import weakref

import pytest
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

import horovod.torch as hvd
from horovod.common.exceptions import HorovodRequestError
from horovod.torch._backward_end import _Work
from optimizer_training import after_each_accumulation, assert_same, batches, distributed, loss_of, net


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


def single(op=hvd.Average, **settings):
    """A parameter of its own optimizer, whose gradient on rank r is r + 1 for each loss of its sum."""
    p = nn.Parameter(torch.zeros(2))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([p], lr=1.0), [("p", p)], op=op, **settings)
    return p, optimizer


def loss(p):
    return p.sum() * (hvd.rank() + 1)


def average():
    return (1 + hvd.size()) / 2


@pytest.mark.parametrize("op", [hvd.Average, hvd.Sum])
@pytest.mark.parametrize("settings", [{}, dict(groups=1), dict(compression=hvd.Compression.fp16)])
def test_gradients_are_reduced_when_backward_returns(op, settings):
    p, optimizer = single(op, **settings)
    wanted = average() * (hvd.size() if op == hvd.Sum else 1)
    for _ in range(2):
        loss(p).backward()
        assert p.grad.tolist() == [wanted] * 2
        optimizer.step()
        assert p.grad.tolist() == [wanted] * 2
        optimizer.zero_grad()
    assert p.tolist() == [-2 * wanted] * 2


@pytest.mark.parametrize("as_dense", [False, True])
def test_sparse_gradients_are_reduced_when_backward_returns(as_dense):
    model = nn.Embedding(hvd.size() + 1, 2, sparse=True)
    optimizer = distributed(model, sgd(model), sparse_as_dense=as_dense)
    model(torch.tensor([hvd.rank()])).sum().backward()
    wanted = torch.full((hvd.size() + 1, 2), 1 / hvd.size())
    wanted[hvd.size()] = 0
    assert torch.allclose(model.weight.grad.to_dense(), wanted)
    optimizer.step()


@pytest.mark.parametrize("settings", [{}, dict(groups=1)])
def test_what_was_frozen_at_first_is_reduced_when_backward_returns(settings):
    frozen, p = nn.Parameter(torch.zeros(2), requires_grad=False), nn.Parameter(torch.zeros(2))
    never = nn.Parameter(torch.zeros(2, dtype=torch.int64), requires_grad=False)
    named = [("frozen", frozen), ("p", p), ("never", never)]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([p for _, p in named], lr=1.0), named, **settings)
    assert [p.requires_grad for _, p in named] == [False, True, False]
    for trained in ({p}, {frozen, p}, {frozen}):
        p.requires_grad_(p in trained)
        frozen.requires_grad_(frozen in trained)
        optimizer.zero_grad(set_to_none=True)
        loss(frozen + p).backward()
        assert [each.grad.tolist() for each in trained] == [[average()] * 2] * len(trained)
        optimizer.step()


def converted(p):
    p.data = p.data.double()


def set_anew(p):
    with torch.no_grad():
        p.set_(p)


@pytest.mark.parametrize("change", [converted, set_anew])
@pytest.mark.parametrize("settings", [{}, dict(groups=1)])
def test_a_parameter_that_was_changed_is_reduced_when_backward_returns(change, settings):
    """module.to() and torch.nn.utils.parametrize change it so. Older torch then drops the hooks of a parameter."""
    p, optimizer = single(**settings)
    change(p)
    for _ in range(2):
        optimizer.zero_grad()
        loss(p).backward()
        assert p.grad.tolist() == [average()] * 2
        optimizer.step()


def test_the_last_of_the_passes_reduces():
    p, optimizer = single(backward_passes_per_step=3)
    for count in (1, 2, 3):
        loss(p).backward()
        assert p.grad.tolist() == [count * (average() if count == 3 else hvd.rank() + 1)] * 2
    optimizer.step()
    assert p.tolist() == [-3 * average()] * 2


def test_passes_that_use_different_parameters_count_too():
    model = nn.ModuleList([nn.Linear(1, 1) for _ in range(2)])
    optimizer = distributed(model, sgd(model), backward_passes_per_step=2)
    for layer in model:
        layer(torch.ones(1, 1) * (hvd.rank() + 1)).sum().backward()
    assert [layer.weight.grad.item() for layer in model] == [average()] * 2
    optimizer.step()


def test_passes_after_a_reduction_are_averaged_as_well():
    p, optimizer = single()
    loss(p).backward()
    loss(p).backward()
    assert p.grad.tolist() == [2 * average()] * 2
    optimizer.step()
    assert p.tolist() == [-2 * average()] * 2


@pytest.mark.several_ranks
def test_a_second_sum_would_count_the_first_again():
    p, optimizer = single(hvd.Sum)
    loss(p).backward()
    with pytest.raises(AssertionError, match=r"more than backward_passes_per_step.*p has another"):
        loss(p).backward()
    optimizer.zero_grad()
    loss(p).backward()
    optimizer.synchronize()  # as in Horovod: another reduction is asked for
    loss(p).backward()
    optimizer.step()
    optimizer.zero_grad()


def test_zero_grad_drops_a_step():
    p, optimizer = single(hvd.Sum)
    for _ in range(3):
        loss(p).backward()
        optimizer.zero_grad()
    loss(p).backward()
    optimizer.step()
    assert p.tolist() == [-average() * hvd.size()] * 2


def test_each_rank_uses_other_parameters_and_all_wait():
    """Nothing is waited for that another rank leaves to its step()."""
    model = nn.ModuleList([nn.Linear(1, 1, bias=False) for _ in range(hvd.size() + 1)])
    optimizer = distributed(model, sgd(model))
    model[hvd.rank()](torch.ones(1, 1)).sum().backward()
    assert [layer.weight.grad.item() for layer in model[:-1]] == [pytest.approx(1 / hvd.size())] * hvd.size()
    assert model[-1].weight.grad is None  # another backward() may bring it
    hvd.barrier()
    optimizer.step()
    assert hvd.size() == 1 or model[-1].weight.grad.item() == 0


def test_a_rank_that_skips_backward_takes_part_in_its_step():
    p, optimizer = single(hvd.Sum)
    last = hvd.size() - 1
    for _ in range(2):
        if hvd.rank() != last or last == 0:
            loss(p).backward()
        optimizer.step()
        optimizer.zero_grad()
    others = sum(range(1, last + 1)) if last else 1
    assert p.tolist() == [-2.0 * others] * 2


@pytest.mark.parametrize("swapped", [False, True])
def test_optimizers_of_one_pass_wait_in_any_order(swapped):
    """Their gradients arrive in another order on each rank, and both miss some on each rank."""
    layers = [nn.Linear(1, 1) for _ in range(4)]
    optimizers = []
    for i in (0, 2):
        pair = nn.ModuleList(layers[i : i + 2])
        named = [(f"pair{i}.{name}", p) for name, p in pair.named_parameters()]
        optimizers.append(hvd.DistributedOptimizer(sgd(pair), named_parameters=named, op=hvd.Sum))
    mine = hvd.rank() % 2
    used = [layers[mine], layers[2 + mine]]
    if mine == swapped:
        used.reverse()
    used[1](used[0](torch.ones(1, 1))).sum().backward()
    for layer in layers:
        assert layer.bias.grad is not None or hvd.size() == 1
    for optimizer in optimizers:
        optimizer.step()


def test_a_pass_that_fails_does_not_stop_the_next_from_waiting():
    p, optimizer = single(backward_passes_per_step=2)
    failing = nn.Parameter(torch.zeros(2))
    failing.register_hook(lambda _: 1 / 0)
    first = failing.sum()
    with pytest.raises(ZeroDivisionError):
        (first + loss(p)).backward()  # what was computed last comes first
    assert p.grad is not None
    optimizer.zero_grad()
    for _ in range(2):
        loss(p).backward()
    assert p.grad.tolist() == [2 * average()] * 2
    optimizer.step()


@pytest.mark.several_ranks
def test_a_rank_whose_pass_has_failed_steps_as_the_others():
    p, optimizer = single()
    failing = nn.Parameter(torch.zeros(2))
    failing.register_hook(lambda _: 1 / 0)
    first = failing.sum()
    if hvd.rank() == 0:
        with pytest.raises(ZeroDivisionError):
            (first + loss(p)).backward()
        with pytest.raises(AssertionError, match=r"after one that failed.*call step\(\) as the other ranks do"):
            optimizer.zero_grad()
    else:
        loss(p).backward()
    optimizer.step()
    assert p.tolist() == [-average()] * 2
    optimizer.zero_grad()


@pytest.mark.several_ranks
def test_ranks_that_call_backward_differently_often_fail_together():
    p, optimizer = single()
    calls = [loss(p).backward, loss(p).backward, optimizer.step]
    if hvd.rank():
        calls = [calls[0], calls[2], calls[1]]
    with pytest.raises(HorovodRequestError, match="do not match: each rank must call both equally often"):
        for call in calls:
            call()
    optimizer.zero_grad()
    loss(p).backward()  # the world stays usable
    assert p.grad.tolist() == [average()] * 2


def scaled(p):
    p.grad.mul_(2)


def replaced(p):
    p.grad = p.grad * 2


@pytest.mark.several_ranks
@pytest.mark.parametrize("change", [scaled, replaced])
@pytest.mark.parametrize("settings", [{}, dict(compression=hvd.Compression.fp16)])
def test_a_change_during_the_reduction_is_an_error(change, settings):
    p, optimizer = single(**settings)
    hook = after_each_accumulation(p, change)
    with pytest.raises(RuntimeError, match=r"gradient of p was changed while .*synchronize") as kept:
        loss(p).backward()
    hook.remove()
    optimizer.zero_grad()
    loss(p).backward()
    assert p.grad.tolist() == [average()] * 2, f"the wait at the end of the failed pass is still awaited: {kept}"


@pytest.mark.parametrize("settings", [{}, dict(compression=hvd.Compression.fp16)])
def test_gradients_may_be_parts_of_one_block(settings):
    parameters = [nn.Parameter(torch.zeros(2)) for _ in range(3)]
    named = [(str(i), p) for i, p in enumerate(parameters)]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(parameters, lr=1.0), named, **settings)
    block = torch.zeros(6)
    for p, part in zip(parameters, block.split(2)):
        p.grad = part
    for _ in range(2):
        optimizer.zero_grad(set_to_none=False)
        sum(loss(p) for p in parameters).backward()
        assert block.tolist() == [average()] * 6
        optimizer.step()


@pytest.mark.several_ranks
def test_pass_of_another_world_does_not_stop_the_next_from_waiting():
    """Work whose pass was broken off with its world, and which something keeps alive."""
    p, optimizer = single()
    loss(p).backward()
    optimizer.step()
    optimizer.zero_grad()
    kept = _Work(iter([None]))
    optimizer._backward_end._work = weakref.ref(kept)
    hvd.shutdown()
    hvd.init()
    loss(p).backward()
    assert p.grad.tolist() == [average()] * 2
    optimizer.step()


class Checkpointed(nn.Module):
    """All parameters are in layers whose backward() reentrant checkpointing runs."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(2)])
        self.unused = nn.Linear(2, 2)

    def forward(self, x, count=2):
        for layer in self.layers[:count]:
            x = checkpoint(layer, x, use_reentrant=True)
        return x


def test_nested_passes_wait_when_all_gradients_are_there():
    model = Checkpointed()
    optimizer = distributed(model.layers, sgd(model.layers), backward_passes_per_step=2)
    x = torch.full((1, 2), hvd.rank() + 1.0, requires_grad=True)
    for _ in range(2):
        model(x).sum().backward()
    for p in model.layers.parameters():
        assert torch.equal(p.grad, hvd.broadcast(p.grad, 0))
    assert torch.equal(model.layers[1].bias.grad, torch.full((2,), 2.0))
    optimizer.step()


@pytest.mark.several_ranks
@pytest.mark.parametrize("asks", [False, True])
def test_nested_passes_alone_with_a_parameter_left_out(asks):
    """The end of the outer pass can't be detected: a change of gradients before step() is an error."""
    model = Checkpointed()
    optimizer = distributed(model, sgd(model))
    x = torch.full((1, 2), hvd.rank() + 1.0, requires_grad=True)
    model(x).sum().backward()
    if asks:
        optimizer.synchronize()
        nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        with optimizer.skip_synchronize():
            optimizer.step()
        assert_same(model, model)
        return
    nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    with pytest.raises(RuntimeError, match=r"call optimizer\.synchronize"):
        optimizer.step()


class SharpnessAware(torch.optim.Optimizer):
    """Steps at the gradient of a neighbouring point, which the closure computes, from one that backward() has computed."""

    def __init__(self, params):
        super().__init__(params, {})

    def step(self, closure):
        moved = [(p, p.grad.clone()) for group in self.param_groups for p in group["params"]]
        with torch.no_grad():
            for p, grad in moved:
                p.add_(grad, alpha=0.1)
        self.zero_grad()
        loss = closure()
        with torch.no_grad():
            for p, grad in moved:
                p.sub_(grad, alpha=0.1).sub_(p.grad, alpha=0.1)
        return loss


@pytest.mark.parametrize("within", [False, True])
def test_step_with_a_closure_after_backward(within):
    """`within`: the first gradients come from an incomplete group of passes."""
    model, reference = net(), net()
    joined, mine = batches(3)
    optimizer = distributed(model, SharpnessAware(model.parameters()))
    if within:
        optimizer.set_backward_passes_per_step(2)
    for m, o, data in ((model, optimizer, mine), (reference, SharpnessAware(reference.parameters()), joined)):
        for batch in data:

            def closure(m=m, batch=batch):
                result = loss_of(m, batch)
                result.backward()
                return result

            closure()
            o.step(closure)
            o.zero_grad()
    assert_same(model, reference)
