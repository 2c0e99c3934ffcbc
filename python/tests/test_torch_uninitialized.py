"""Parameters that have no memory yet, and parameters whose memory is another one later. On 1 or 2 ranks."""

import pytest
import torch

import horovod.torch as hvd

LAZY = "of a lazy module and has no shape yet: run one forward pass, then call"
META = r"on the meta device and has no memory: call model.to_empty\(device=...\), fill it, then call"


def lazy():
    return torch.nn.Sequential(torch.nn.LazyLinear(1), torch.nn.LazyBatchNorm1d())


def meta():
    return torch.nn.Sequential(torch.nn.Linear(3, 1, device="meta"))


def optimizer_of(model, **settings):
    return hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), **settings)


KINDS = pytest.mark.parametrize(("model", "why"), [(lazy, LAZY), (meta, META)])


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
@KINDS
def test_parameters_without_memory_are_refused_by_name(model, why):
    net = model()
    for given in (net.state_dict(), list(net.named_parameters())):
        with pytest.raises(ValueError, match=rf"^0\.(bias|weight) is {why} broadcast_parameters$"):
            hvd.broadcast_parameters(given, root_rank=0)
    with pytest.raises(ValueError, match=rf"^TorchState\.model: 0\.weight is {why} TorchState$"):
        hvd.elastic.TorchState(model=net)


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
@KINDS
@pytest.mark.parametrize("op", [hvd.Average, hvd.Adasum])
def test_optimizer_of_parameters_without_memory_is_refused(model, why, op):
    if hvd.size() == 1:
        pytest.skip("an optimizer that reduces nothing needs no hooks")
    net = model()
    with pytest.raises(ValueError, match=rf"^parameter 0\.weight is {why} DistributedOptimizer$"):
        optimizer_of(net, named_parameters=net.named_parameters(), op=op)
    with pytest.raises(ValueError, match=rf"^parameter allreduce\.noname\.0\.0 is {why} DistributedOptimizer$"):
        optimizer_of(net, op=op)


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
def test_lazy_module_is_trained_after_one_forward_pass():
    net = lazy()
    net(torch.ones(2, 3))
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    hvd.elastic.TorchState(model=net, optimizer=optimizer_of(net))


@pytest.mark.parametrize(
    "change",
    [
        lambda net: net.to_empty(device="cpu"),
        lambda net: net.double(),
        lambda net: net.to(torch.float64),
        lambda net: [setattr(p, "data", p.detach().clone()) for p in net.parameters()],
    ],
)
def test_gradients_are_reduced_after_parameters_got_other_memory(change):
    net = torch.nn.Linear(3, 1)
    optimizer = optimizer_of(net, named_parameters=net.named_parameters())
    change(net)
    for _ in range(2):
        with torch.no_grad():
            for p in net.parameters():
                p.fill_(0)
        optimizer.zero_grad()
        net(torch.full((1, 3), hvd.rank() + 1.0, dtype=net.weight.dtype)).sum().backward()
        optimizer.step()
        mean = (hvd.size() + 1) / 2
        assert net.weight.tolist() == [[-mean] * 3]
