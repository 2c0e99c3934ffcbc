"""Parameters that a script puts into an optimizer's groups, or takes out of them, by hand. On any number of ranks."""

import copy
import gc
import weakref

import pytest
import torch

import horovod.torch as hvd
from test_torch_optimizer import assert_same, batches, distributed, loss_of, net


def replace(model, optimizer):
    """Puts a copy in the place of the first weight, as growing or pruning models do."""
    old = next(iter(model.parameters()))
    new = torch.nn.Parameter(old.detach().clone())
    for module in model.modules():
        if getattr(module, "weight", None) is old:
            module.weight = new
    for group in optimizer.param_groups:
        group["params"][:] = [new if p is old else p for p in group["params"]]
    optimizer.state.pop(old, None)


def leave(model, optimizer):
    left = optimizer.param_groups[0]["params"].pop().requires_grad_(False)
    left.grad = None  # clipping would see that of this rank


def add(model, optimizer):
    optimizer.param_groups.append({**optimizer.param_groups[0], "params": [optimizer.param_groups[0]["params"].pop()]})


CHANGES = dict(replace=replace, leave=leave, add=add)
WHEN = ("after step", "after zero_grad", "before step")


def train(model, optimizer, data, change, when):
    for number, batch in enumerate(data):
        optimizer.zero_grad()
        if number == 1 and when == "after zero_grad":
            change(model, optimizer)
        loss_of(model, batch).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        if number == 1 and when == "before step":
            change(model, optimizer)
        optimizer.step()
        if number == 1 and when == "after step":
            change(model, optimizer)


def momentum(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("fields", [{}, {"groups": 2}], ids=["single", "groups"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_training_is_that_of_one_process(change, fields, when):
    model, reference = net(), net()
    joined, mine = batches(5)
    optimizer = distributed(model, momentum(model), **fields)
    train(model, optimizer, mine, change, when)
    train(reference, momentum(reference), joined, change, when)
    assert_same(model, reference, tolerance=1e-5)
    assert_same(model, copy.deepcopy(model))


def test_adasum():
    model, reference = net(), net()
    joined, _ = batches(5)
    train(model, distributed(model, momentum(model), op=hvd.Adasum), joined, replace, "after step")
    train(reference, momentum(reference), joined, replace, "after step")
    assert_same(model, reference, tolerance=1e-5)


def test_what_has_left_is_not_kept():
    model = net()
    optimizer = distributed(model, momentum(model))
    old = weakref.ref(next(iter(model.parameters())))
    train(model, optimizer, batches(3)[1], replace, "after step")
    gc.collect()
    assert old() is None
    copied, copied_optimizer = copy.deepcopy((model, optimizer))
    train(copied, copied_optimizer, batches(2)[1], lambda *_: None, None)


def test_what_comes_back_is_reduced_once():
    model, reference = net(), net()
    joined, mine = batches(5)
    results = []
    for m, o, data in (
        (model, distributed(model, momentum(model)), mine),
        (reference, momentum(reference), joined),
    ):
        params = o.param_groups[0]["params"]
        for number, batch in enumerate(data):
            if number == 1:
                last = params.pop()
                last.requires_grad_(False)
            if number == 3:
                params.append(last.requires_grad_(True))
            o.zero_grad()
            loss_of(m, batch).backward()
            o.step()
        results.append(m)
    assert_same(*results, tolerance=1e-5)
