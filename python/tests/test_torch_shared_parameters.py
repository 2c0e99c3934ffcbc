"""Several optimizers of the same parameters, if some ranks have dropped one. On any number of ranks."""

import gc
from contextlib import nullcontext

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


@pytest.mark.parametrize("synchronizes", [False, True])
def test_each_gradient_is_summed_once(synchronizes):
    p = nn.Parameter(torch.zeros(2))
    optimizers = [optimizer_of(p, name, op=hvd.Sum) for name in ("first", "second")]
    for _ in range(2):
        for optimizer in optimizers:
            optimizer.zero_grad()
        backward(p)
        if synchronizes:
            for optimizer in optimizers:
                optimizer.synchronize()
        for optimizer in optimizers:
            with optimizer.skip_synchronize() if synchronizes else nullcontext():
                optimizer.step()
            assert p.grad.tolist() == [average() * hvd.size()] * 2
    assert p.tolist() == [-4 * average() * hvd.size()] * 2


@pytest.mark.several_ranks
def test_summed_by_the_first_that_steps_is_an_error_in_the_second():
    p = nn.Parameter(torch.zeros(2))
    first, second = [optimizer_of(p, name, op=hvd.Sum) for name in ("first", "second")]
    for _ in range(2):
        backward(p)
        second.step()
        for _ in range(2):
            with pytest.raises(RuntimeError, match=r"gradient of first was reduced for another.*step last"):
                first.step()
        for optimizer in (first, second):
            optimizer.zero_grad()


def test_an_optimizer_made_after_a_step_reduces_what_comes_then():
    p = nn.Parameter(torch.zeros(2))
    for epoch in range(4):
        optimizer = optimizer_of(p, "first", op=hvd.Sum)
        p.grad = None
        backward(p)
        optimizer.step()
        assert p.tolist() == [-(epoch + 1) * average() * hvd.size()] * 2
        older, optimizer = optimizer, None
    assert older is not None


def test_zeros_that_were_summed_may_be_summed_again():
    p = nn.Parameter(torch.zeros(2))
    first, second = [optimizer_of(p, name, op=hvd.Sum) for name in ("first", "second")]
    backward(p)
    second.step()
    p.grad.zero_()
    first.step()
    assert p.tolist() == [-average() * hvd.size()] * 2


def test_of_shared_and_own_parameters_each_gradient_is_summed_once():
    p, q = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))
    both = hvd.DistributedOptimizer(torch.optim.SGD([p, q], lr=1.0), [("p", p), ("q", q)], op=hvd.Sum)
    one = hvd.DistributedOptimizer(torch.optim.SGD([p], lr=1.0), [("p", p)], op=hvd.Sum)
    for _ in range(2):
        both.zero_grad()
        one.zero_grad()
        ((p + q).sum() * (hvd.rank() + 1)).backward()
        both.step()
        one.step()
    total = average() * hvd.size()
    assert (p.tolist(), q.tolist()) == ([-4 * total] * 2, [-2 * total] * 2)


def test_an_optimizer_made_before_the_step_sums_nothing_again():
    p = nn.Parameter(torch.zeros(2))
    first = optimizer_of(p, "first", op=hvd.Sum)
    backward(p)
    second = optimizer_of(p, "second", op=hvd.Sum)
    second.step()
    first.step()
    assert p.tolist() == [-2 * average() * hvd.size()] * 2


def test_an_average_may_change_between_two_steps():
    p = nn.Parameter(torch.zeros(2))
    first, second = [optimizer_of(p, name) for name in ("first", "second")]
    backward(p)
    second.step()
    p.grad.mul_(0.5)
    first.step()
    assert p.tolist() == [-1.5 * average()] * 2


def test_a_gradient_that_replaces_a_reduced_one_is_reduced():
    p = nn.Parameter(torch.zeros(2))
    first, second = [optimizer_of(p, name, op=hvd.Sum) for name in ("first", "second")]
    backward(p)
    second.step()
    p.grad = torch.full((2,), hvd.rank() + 1.0)
    first.step()
    assert p.tolist() == [-2 * average() * hvd.size()] * 2


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
