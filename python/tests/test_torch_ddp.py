"""The plain loop, with clipping between backward() and step(), gives DDP's parameters bit for bit. On 1, 2 or 4 ranks.

Two numbers have one sum. The sum of four depends on the order, which is not DDP's; there hooks round the gradients to multiples of
a power of two, whose sums are exact.
"""

import contextlib
import os
import tempfile

import pytest
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

import horovod.torch as hvd
from test_torch_amp import scalers

STEPS = 4
UNIT = 2.0**-12


@pytest.fixture(scope="module", autouse=True)
def process_group():
    if hvd.size() & (hvd.size() - 1):
        pytest.skip("DDP divides before the sum, which rounds unless the size is a power of two")
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    with tempfile.TemporaryDirectory() as folder:
        place = hvd.broadcast_object(os.path.join(folder, "store"))
        dist.init_process_group("gloo", init_method=f"file://{place}", rank=hvd.rank(), world_size=hvd.size())
        yield
        hvd.barrier()
        dist.destroy_process_group()
        hvd.barrier()


class Net(nn.Module):
    """A network whose layers a batch may skip, and which may be checkpointed."""

    def __init__(self, reentrant=None, heads=1):
        super().__init__()
        torch.manual_seed(2)
        self.body = nn.ModuleList([nn.Linear(7, 7) for _ in range(4)])
        self.heads = nn.ModuleList([nn.Linear(7, 3) for _ in range(heads)])
        self.reentrant = reentrant

    def forward(self, x, head=0):
        for layer in self.body:
            if self.reentrant is None:
                x = torch.tanh(layer(x))
            else:
                x = checkpoint(lambda x, layer=layer: torch.tanh(layer(x)), x, use_reentrant=self.reentrant)
        return self.heads[head](x)


def batches():
    generator = torch.Generator().manual_seed(10 + hvd.rank())
    return [
        (torch.randn(5, 7, generator=generator, requires_grad=True), torch.randn(5, 3, generator=generator))
        for _ in range(2 * STEPS)
    ]


def rounded(gradient):
    return (gradient / UNIT).round() * UNIT


def with_exact_sums(net):
    if hvd.size() > 2:
        for p in net.parameters():
            p.register_hook(rounded)
    return net


def ours(net, **settings):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), **settings)
    return net, optimizer, optimizer


def ddps(net, **settings):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9)
    network = DistributedDataParallel(net, **settings)
    return network, optimizer, network


def loss_of(network, batch, *arguments):
    return F.mse_loss(network(batch[0], *arguments), batch[1]) * (3 if hvd.rank() else 1)


def plain_loop(network, optimizer, _):
    for batch in batches():
        optimizer.zero_grad()
        loss_of(network, batch).backward()
        nn.utils.clip_grad_norm_(network.parameters(), 0.1)
        optimizer.step()


def assert_equal(loop, make=Net, settings=None, ddp_settings=None):
    """Trains by `loop` in both ways and compares."""
    nets = [with_exact_sums(make()), with_exact_sums(make())]
    loop(*ours(nets[0], **(settings or {})))
    loop(*ddps(nets[1], **(ddp_settings or {})))
    for (name, p), q in zip(nets[0].named_parameters(), nets[1].parameters()):
        assert torch.equal(p, q), name


def test_plain_loop():
    assert_equal(plain_loop)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointed_layers(reentrant):
    assert_equal(plain_loop, lambda: Net(reentrant))


def test_groups():
    assert_equal(plain_loop, settings=dict(groups=2))


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="this torch has no compiler")
def test_compiled():
    def loop(network, optimizer, _):
        plain_loop(torch.compile(network, backend="aot_eager"), optimizer, _)

    assert_equal(loop)


def test_accumulation_by_no_sync():
    def loop(network, optimizer, owner):
        data = batches()
        for first, last in zip(data[::2], data[1::2]):
            optimizer.zero_grad()
            with owner.no_sync():
                loss_of(network, first).backward()
            loss_of(network, last).backward()
            nn.utils.clip_grad_norm_(network.parameters(), 0.1)
            optimizer.step()

    assert_equal(loop)


def test_accumulation_by_count():
    def loop(network, optimizer, owner):
        for i, batch in enumerate(batches()):
            waits = i % 2 or owner is optimizer
            with contextlib.nullcontext() if waits else owner.no_sync():
                loss_of(network, batch).backward()
            if i % 2:
                nn.utils.clip_grad_norm_(network.parameters(), 0.1)
                optimizer.step()
                optimizer.zero_grad()

    assert_equal(loop, settings=dict(backward_passes_per_step=2))


def test_several_backward_passes_each_of_which_reduces():
    def loop(network, optimizer, _):
        data = batches()
        for first, second in zip(data[::2], data[1::2]):
            optimizer.zero_grad()
            loss_of(network, first).backward()
            nn.utils.clip_grad_norm_(network.parameters(), 0.125)
            loss_of(network, second).backward()
            nn.utils.clip_grad_norm_(network.parameters(), 0.1)
            optimizer.step()

    # The clipped gradients are not multiples, but all ranks have the same ones.
    if hvd.size() <= 2:
        assert_equal(loop)


@pytest.mark.parametrize("make_scaler", list(scalers()))
def test_scaler(make_scaler):
    def loop(network, optimizer, _):
        scaler = make_scaler(1024.0)
        for i, batch in enumerate(batches()):
            optimizer.zero_grad()
            loss = loss_of(network, batch)
            scaler.scale(loss * float("inf") if i == 2 and hvd.rank() == 0 else loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(network.parameters(), 0.1)
            scaler.step(optimizer)
            scaler.update()
        assert scaler.get_scale() == 512.0

    assert_equal(loop)


@pytest.mark.parametrize("reentrant", [None, False])
def test_parameters_that_some_ranks_or_all_leave_out(reentrant):
    def loop(network, optimizer, _):
        for i, batch in enumerate(batches()):
            optimizer.zero_grad()
            loss_of(network, batch, (hvd.rank() + i) % 2).backward()
            nn.utils.clip_grad_norm_(network.parameters(), 0.1)
            optimizer.step()

    if hvd.size() > 1:
        assert_equal(loop, lambda: Net(reentrant, heads=3), ddp_settings=dict(find_unused_parameters=True))


def test_beside_a_distributed_optimizer_the_error_names_it():
    if hvd.size() == 1:
        pytest.skip("nothing is reduced twice")
    net = DistributedDataParallel(nn.Linear(3, 1))
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(net.parameters(), lr=0.1), named_parameters=net.named_parameters()
    )
    with pytest.raises(RuntimeError, match=r"by DistributedDataParallel, .* give hvd\.DistributedOptimizer the bare"):
        for _ in range(3):
            optimizer.zero_grad()
            net(torch.ones(2, 3)).sum().backward()
            optimizer.step()
    hvd.barrier()
