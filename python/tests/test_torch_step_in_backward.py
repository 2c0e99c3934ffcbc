"""Scripts that step and zero within backward(), in hooks of their parameters. On any number of ranks."""

import pytest
import torch
import torch.nn as nn

import horovod.torch as hvd
from optimizer_training import after_each_accumulation

ZEROES = {
    "none": lambda optimizer, p: optimizer.zero_grad(set_to_none=True),
    "zeros": lambda optimizer, p: optimizer.zero_grad(set_to_none=False),
    "none by hand": lambda optimizer, p: setattr(p, "grad", None),
    "zeros by hand": lambda optimizer, p: p.grad.zero_(),
}


def optimizer_of(named, **settings):
    return hvd.DistributedOptimizer(torch.optim.SGD([p for _, p in named], lr=1.0), named, **settings)


def average():
    return (1 + hvd.size()) / 2


@pytest.mark.parametrize("op", [hvd.Average, hvd.Sum])
@pytest.mark.parametrize("zero", ZEROES.values(), ids=ZEROES)
@pytest.mark.parametrize("before", [True, False])
def test_each_parameter_has_an_optimizer_that_steps_in_its_hook(before, zero, op):
    """`before`: the hooks come before those of the distributed optimizers."""
    named = [(name, nn.Parameter(torch.zeros(2))) for name in ("first", "second")]
    optimizers = {}

    def change(p):
        optimizers[p].step()
        zero(optimizers[p], p)

    def wrap():
        optimizers.update((p, optimizer_of([(name, p)], op=op)) for name, p in named)

    if not before:
        wrap()
    hooks = [after_each_accumulation(p, change) for _, p in named]
    if before:
        wrap()
    for step in (1, 2, 3):
        (sum(p.sum() for _, p in named) * (hvd.rank() + 1)).backward()
        wanted = -step * average() * (hvd.size() if op == hvd.Sum else 1)
        assert [p.tolist() for _, p in named] == [[wanted] * 2] * 2
    for hook in hooks:
        hook.remove()


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("to_none", [True, False])
def test_one_optimizer_steps_in_the_hook_of_one_parameter(to_none, last):
    """`last`: its gradient is the last one. Otherwise the other's comes after the step, and counts in the next one."""
    p, q = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))
    q.grad = torch.zeros(1)

    def change(_):
        optimizer.step()
        optimizer.zero_grad(set_to_none=to_none)

    hook = after_each_accumulation(p, change)
    optimizer = optimizer_of([("p", p), ("q", q)])
    for step in (1, 2, 3):
        first, second = (q, p) if last else (p, q)  # what was computed last comes first
        x = second * (hvd.rank() + 1.0)
        (x + first * (hvd.rank() + 1.0)).sum().backward()
        assert p.tolist() == [-step * average()]
        assert q.tolist() == [-(step if last else step - 1) * average()]
    hook.remove()
