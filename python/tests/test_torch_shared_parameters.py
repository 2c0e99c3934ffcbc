"""Several optimizers of the same parameters, of which some ranks may have dropped one. On any number of ranks."""

import gc

import pytest
import torch
import torch.nn as nn

import horovod.torch as hvd


def optimizer_of(p, name, **settings):
    return hvd.DistributedOptimizer(torch.optim.SGD([p], lr=1.0), [(name, p)], **settings)


def backward(p):
    """Leaves the average in p.grad; a rank that waits for another optimizer's reduction meets the allreduce."""
    p.grad = None
    (p.sum() * (hvd.rank() + 1)).backward()
    hvd.allreduce(torch.zeros(1), name="metric")


def average():
    return (1 + hvd.size()) / 2


def test_a_dropped_optimizer_that_only_some_ranks_still_have_reduces_nothing():
    p = nn.Parameter(torch.zeros(2))
    dropped = [optimizer_of(p, "first")]
    optimizer = optimizer_of(p, "second")
    if hvd.rank() > 0:
        dropped.clear()  # as Python does with a cycle of references, sooner or later
        gc.collect()
    for _ in range(2):
        backward(p)
        assert p.grad.tolist() == [average()] * 2
        optimizer.step()
    assert p.tolist() == [-2 * average()] * 2


@pytest.mark.parametrize("zeroes", [False, True])
def test_an_optimizer_is_used_again_after_a_later_one_was_dropped(zeroes):
    p = nn.Parameter(torch.zeros(2))
    optimizer = optimizer_of(p, "first")
    dropped = [optimizer_of(p, "second")]
    if hvd.rank() > 0:
        dropped.clear()
        gc.collect()
    for _ in range(3):
        if zeroes:
            optimizer.zero_grad()
        backward(p)
        optimizer.step()
        assert p.grad.tolist() == [average()] * 2
    assert p.tolist() == [-3 * average()] * 2


def test_each_gradient_is_summed_once():
    p = nn.Parameter(torch.zeros(2))
    optimizers = [optimizer_of(p, name, op=hvd.Sum) for name in ("first", "second")]
    for _ in range(2):
        for optimizer in optimizers:
            optimizer.zero_grad()
        backward(p)
        for optimizer in optimizers:
            optimizer.step()
            assert p.grad.tolist() == [average() * hvd.size()] * 2
    assert p.tolist() == [-4 * average() * hvd.size()] * 2


def test_newcomers_have_made_but_not_used_their_optimizers():
    p = nn.Parameter(torch.zeros(2))
    first, second = [optimizer_of(p, name) for name in ("first", "second")]
    if hvd.rank() == 0:
        first.zero_grad()  # a survivor, in the middle of the training
    hvd.elastic.TorchState(optimizer=first).sync()
    backward(p)
    assert p.grad.tolist() == [average()] * 2
    first.step()
    second.step()
