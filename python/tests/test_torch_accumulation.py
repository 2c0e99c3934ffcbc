"""Gradients summed up over several backward passes: no_sync(), and what zero_grad leaves. Runs on
any number of ranks."""

import contextlib

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

import horovod.torch as hvd


class TwoHeads(nn.Module):
    """Uses the head that the caller chooses, so that some parameters get a gradient in some passes only."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.body = nn.Linear(4, 5)
        self.heads = nn.ModuleList(nn.Linear(5, 2) for _ in range(2))

    def forward(self, x, head):
        return self.heads[head](torch.tanh(self.body(x)))


def joined_batches(counts):
    generator = torch.Generator().manual_seed(11)
    rows = 3 * hvd.size()
    return [[torch.randn(rows, 4, generator=generator) for _ in range(n)] for n in counts]


def loss_of(model, x, number):
    return F.mse_loss(model(x, number % 2), torch.ones(len(x), 2))


def train(model, optimizer, steps, mine, set_to_none=True):
    """A step for each list of batches; all but its last batch go without communication."""
    no_sync = getattr(optimizer, "no_sync", contextlib.nullcontext)
    for batches in steps:
        with no_sync():
            for i, x in enumerate(batches[:-1]):
                loss_of(model, x[mine], i).backward()
        loss_of(model, batches[-1][mine], len(batches) - 1).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=set_to_none)


def assert_trained_alike(model, reference):
    for (name, p), q in zip(model.named_parameters(), reference.parameters()):
        assert torch.allclose(p, q, atol=1e-5), name


@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize("groups", [None, 2])
def test_no_sync_equals_one_process(groups, set_to_none):
    model, reference = TwoHeads(), TwoHeads()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        named_parameters=model.named_parameters(),
        groups=groups,
    )
    steps = joined_batches([3, 2, 4, 2])  # both heads in each step
    train(model, optimizer, steps, slice(3 * hvd.rank(), 3 * hvd.rank() + 3), set_to_none)
    local = torch.optim.SGD(reference.parameters(), lr=0.1, momentum=0.9)
    train(reference, local, steps, slice(None), set_to_none)
    assert_trained_alike(model, reference)


@pytest.mark.several_ranks
def test_no_sync_communicates_nothing():
    model = nn.Linear(2, 1)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    with optimizer.no_sync():
        model(torch.full((1, 2), float(hvd.rank()))).sum().backward()
    assert torch.equal(model.weight.grad, torch.full((1, 2), float(hvd.rank())))
    optimizer.synchronize()
    average = (hvd.size() - 1) / 2
    assert torch.allclose(model.weight.grad, torch.full((1, 2), average))


def test_no_sync_leaves_a_pass_count_alone():
    model = nn.Linear(2, 1)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), backward_passes_per_step=2)
    x = torch.ones(1, 2)
    with optimizer.no_sync():
        for _ in range(5):  # more than the count
            model(x).sum().backward()
    for _ in range(2):
        model(x).sum().backward()
    optimizer.synchronize()
    assert torch.equal(model.weight.grad, torch.full((1, 2), 7.0))


def test_no_sync_of_adasum_changes_nothing():
    model = nn.Linear(2, 1)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), op=hvd.Adasum)
    start = model.weight.detach().clone()
    with optimizer.no_sync():
        model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert torch.allclose(model.weight, start - 0.1)
