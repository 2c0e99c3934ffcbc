"""Optimizers whose parameters have the same names, in one backward pass. On any number of ranks."""

import copy
import pickle

import pytest
import torch
import torch.nn as nn

import horovod.torch as hvd
from horovod.common.exceptions import HorovodRequestError

KINDS = [dict(), dict(groups=1), dict(op=hvd.Adasum)]


def networks():
    """Two with the same names and shapes, the same on all ranks."""
    torch.manual_seed(8)
    return nn.Linear(3, 3), nn.Linear(3, 3)


def distributed(network, named=True, **settings):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    names = network.named_parameters() if named else None
    return hvd.DistributedOptimizer(optimizer, named_parameters=names, **settings)


def train(pair, optimizers, order=(0, 1)):
    first, second = pair
    for step in range(3):
        second(torch.tanh(first(torch.ones(2, 3) * (hvd.rank() + step)))).sum().backward()
        for number in order:
            optimizers[number].step()
            optimizers[number].zero_grad()


def assert_same_on_all_ranks(*networks):
    for network in networks:
        for p in network.parameters():
            assert torch.equal(p.detach(), hvd.broadcast(p.detach(), 0))


@pytest.mark.parametrize("settings", KINDS, ids=["plain", "groups", "adasum"])
@pytest.mark.parametrize("named", [True, False])
def test_two_networks(settings, named):
    pair, reference = networks(), networks()
    train(pair, [distributed(network, named, **settings) for network in pair])
    prefixed = [
        hvd.DistributedOptimizer(
            torch.optim.SGD(network.parameters(), lr=0.1), network.named_parameters(name), **settings
        )
        for name, network in zip(("generator", "discriminator"), reference)
    ]
    train(reference, prefixed)
    for network, same in zip(pair, reference):
        assert all(torch.equal(p, q) for p, q in zip(network.parameters(), same.parameters()))
    assert_same_on_all_ranks(*pair)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_copy_on_one_rank_does_not_count(copied):
    pair = networks()
    first = distributed(pair[0])
    if hvd.rank() == 0:
        copied((pair[0], first))
    optimizers = [first, distributed(pair[1])]
    train(pair, optimizers)
    train(*copied((pair, optimizers)))
    assert_same_on_all_ranks(*pair)


def test_optimizers_that_fail_do_not_count():
    pair = networks()
    if hvd.rank() == 0:
        with pytest.raises(ValueError, match="named_parameters"):
            hvd.DistributedOptimizer(torch.optim.SGD(pair[0].parameters(), lr=0.1), [("weight", pair[0].weight)])
    train(pair, [distributed(network) for network in pair])
    assert_same_on_all_ranks(*pair)


@pytest.mark.several_ranks
def test_in_an_elastic_job_the_error_says_what_to_pass(monkeypatch):
    """Its ranks make their optimizers at different times, so they can't number them alike."""
    monkeypatch.setenv("HOROVOD_ELASTIC", "1")
    names = {optimizer._operation_name(p) for n in networks() for optimizer in [distributed(n)] for p in n.parameters()}
    assert names == {"weight", "bias"}
    if hvd.rank() == 0:  # the others come later, so it is in flight
        handle = hvd.allreduce_async(torch.ones(1), name="same")
        with pytest.raises(ValueError, match=r"own name.*named_parameters"):
            hvd.allreduce_async(torch.ones(1), name="same")
    hvd.barrier()
    hvd.synchronize(handle if hvd.rank() == 0 else hvd.allreduce_async(torch.ones(1), name="same"))


@pytest.mark.several_ranks
def test_ranks_that_leave_out_different_networks():
    """Within backward() each rank waits for another optimizer's gradients; without synchronization the steps agree."""
    pair = networks()
    first, second = (distributed(network) for network in pair)
    with pytest.raises(HorovodRequestError, match=r"backward\(\) in no_sync\(\) of each optimizer, then step\(\)"):
        pair[hvd.rank() % 2](torch.ones(2, 3)).sum().backward()
    first, second = (distributed(network) for network in pair)
    for step in range(2):
        first.zero_grad()
        second.zero_grad()
        with first.no_sync(), second.no_sync():
            pair[(hvd.rank() + step) % 2](torch.ones(2, 3) * (hvd.rank() + 1)).sum().backward()
        first.step()
        second.step()
    assert_same_on_all_ranks(*pair)
