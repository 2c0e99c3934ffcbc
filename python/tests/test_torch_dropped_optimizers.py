"""Distributed optimizers that the script drops, with the warning if it continues without one. On any number of ranks."""

import gc
import warnings
import weakref

import pytest
import torch

import horovod.torch as hvd

several_ranks = pytest.mark.several_ranks


def plain():
    p = torch.nn.Parameter(torch.zeros(2))
    return p, torch.optim.SGD([p], lr=1.0)


def distributed(p, optimizer, **settings):
    return hvd.DistributedOptimizer(optimizer, [("p", p)], **settings)


def warned_in_backward(p):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            p.sum().backward()
    assert len(caught) <= 1
    return any("dropped before its first step" in str(one.message) and one.filename == __file__ for one in caught)


@several_ranks
@pytest.mark.parametrize("op", [hvd.Average, hvd.Adasum])
def test_forgotten_assignment(op):
    p, optimizer = plain()
    distributed(p, optimizer, op=op)
    gc.collect()
    assert warned_in_backward(p)
    assert not p._backward_hooks, "each further backward() would be slower"
    optimizer.step()


@several_ranks
def test_dropped_later_but_never_stepped_with():
    p, optimizer = plain()
    other = distributed(p, optimizer)
    p.sum().backward()
    optimizer.step()
    del other
    gc.collect()
    assert warned_in_backward(p)


def test_no_warning_once_it_has_stepped():
    p, optimizer = plain()
    other = distributed(p, optimizer)
    p.sum().backward()
    other.step()
    del other
    gc.collect()
    assert not warned_in_backward(p)


@pytest.mark.parametrize("ops", [(hvd.Average, hvd.Average), (hvd.Average, hvd.Adasum), (hvd.Adasum, hvd.Average)])
@pytest.mark.parametrize("dropped", [0, 1])
def test_no_warning_while_another_one_has_the_parameter(ops, dropped):
    p, optimizer = plain()
    both = [distributed(p, optimizer, op=op) for op in ops]
    del both[dropped]
    gc.collect()
    assert not warned_in_backward(p)
    both[0].step()  # which may have kept the other one alive until now
    assert not warned_in_backward(p)
    both.clear()
    gc.collect()
    assert not warned_in_backward(p)


def test_no_warning_without_a_gradient():
    p, optimizer = plain()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        distributed(p, optimizer)
        gc.collect()


def test_parameters_are_not_kept_alive():
    p, optimizer = plain()
    other = distributed(p, optimizer)
    seen = weakref.ref(p)
    del other, optimizer, p
    gc.collect()
    assert seen() is None
