"""Objects, parameters and optimizers' states that all ranks are given. Runs on any number of
ranks."""

import pytest
import torch

import horovod.torch as hvd


@pytest.fixture
def ends(monkeypatch):
    """A process set of the first and the last rank."""
    monkeypatch.setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1")
    if hvd.size() < 3:
        yield hvd.global_process_set
        return
    process_set = hvd.add_process_set([0, hvd.size() - 1])
    yield process_set
    assert hvd.remove_process_set(process_set)


def test_objects():
    obj = {"rank": hvd.rank(), "f": lambda x: x + 1, "data": b"x" * 100_000 * (hvd.rank() + 1)}
    for root in range(hvd.size()):
        got = hvd.broadcast_object(obj if hvd.rank() == root else None, root)
        assert got["rank"] == root and got["f"](1) == 2 and len(got["data"]) == 100_000 * (root + 1)
    everyone = hvd.allgather_object(obj)
    assert [got["rank"] for got in everyone] == list(range(hvd.size()))


def test_objects_of_a_process_set(ends):
    if ends.included():
        last = hvd.size() - 1
        assert hvd.broadcast_object(hvd.rank(), last, process_set=ends) == last
        assert hvd.allgather_object(hvd.rank(), process_set=ends) == ends.ranks
        assert hvd.allgather_object(hvd.rank(), name="named", process_set=ends) == ends.ranks


def test_objects_without_content():
    assert hvd.broadcast_object(None) is None
    assert hvd.broadcast_object([], name="empty") == []
    assert hvd.allgather_object(None) == [None] * hvd.size()


def test_expanded_tensors_are_broadcast():
    """Their elements are the same ones in memory."""
    for row in (torch.arange(3.0), torch.tensor(1.0)):
        tensor = (row + hvd.rank()).expand(4, *([3] if row.ndim == 0 else row.shape))
        hvd.broadcast_parameters({"t": tensor}, root_rank=0)
        assert torch.equal(tensor, row.expand_as(tensor))


def test_broadcast_parameters():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    for p in model.parameters():
        p.data.fill_(hvd.rank() + 1)
    hvd.broadcast_parameters(model.state_dict(), root_rank=hvd.size() - 1)
    assert all((p == hvd.size()).all() for p in model.parameters())
    hvd.broadcast_parameters(list(model.named_parameters()), root_rank=0)
    transposed = torch.full((3, 2), float(hvd.rank())).t()  # not contiguous
    hvd.broadcast_parameters([transposed], root_rank=0)
    assert (transposed == 0).all()
    for wrong in (model.named_parameters(), model):
        with pytest.raises(ValueError, match=r"invalid params of type: .*; pass model.state_dict\(\), or a list"):
            hvd.broadcast_parameters(wrong, root_rank=0)


def test_broadcast_optimizer_state_of_no_optimizer():
    model = torch.nn.Linear(3, 4)
    for wrong, name in ((model, "Linear"), (model.state_dict(), "OrderedDict")):
        with pytest.raises(TypeError, match=f"needs the optimizer itself, got .*{name}"):
            hvd.broadcast_optimizer_state(wrong, root_rank=0)


def test_broadcast_parameters_of_a_process_set(ends):
    tensor = torch.full((3,), float(hvd.rank()))
    if ends.included():
        hvd.broadcast_parameters({"t": tensor}, root_rank=hvd.size() - 1, process_set=ends)
    assert (tensor == (hvd.size() - 1 if ends.included() else hvd.rank())).all()


OPTIMIZERS = {
    kind.__name__: kind
    for kind in vars(torch.optim).values()
    if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer) and kind is not torch.optim.Optimizer
}


def trained(kind, steps):
    torch.manual_seed(3)
    sparse = kind == "SparseAdam"
    model = torch.nn.Embedding(6, 4, sparse=sparse) if sparse else torch.nn.Linear(6, 4, bias=False)
    settings = dict(momentum=0.9) if kind in ("SGD", "RMSprop") else {}
    optimizer = OPTIMIZERS[kind](model.parameters(), lr=0.01 * (1 + hvd.rank()), **settings)
    for _ in range(steps):
        train(model, optimizer)
    return model, optimizer


def train(model, optimizer):
    def closure():
        optimizer.zero_grad()
        x = torch.arange(6) if isinstance(model, torch.nn.Embedding) else torch.eye(6)
        loss = (model(x) - 1).pow(2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)


def same(one, other):
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


@pytest.mark.parametrize("kind", sorted(OPTIMIZERS))
def test_broadcast_optimizer_state(kind):
    """Only the root has trained; afterwards all train alike. LBFGS, too, which Horovod refuses."""
    root = hvd.size() - 1
    model, optimizer = trained(kind, 2 if hvd.rank() == root else 0)
    hvd.broadcast_parameters(model.state_dict(), root)
    hvd.broadcast_optimizer_state(optimizer, root, model=model)
    assert optimizer.param_groups[0]["lr"] == 0.01 * (1 + root)
    assert optimizer.param_groups[0]["params"][0] is model.weight
    train(model, optimizer)
    mine = (model.state_dict(), optimizer.state_dict())
    for theirs in hvd.allgather_object(mine):
        assert same(mine, theirs)


def test_broadcast_optimizer_state_of_a_process_set(ends):
    _, optimizer = trained("Adam", 1 + hvd.rank())
    if ends.included():
        hvd.broadcast_optimizer_state(optimizer, hvd.size() - 1, process_set=ends)
        lr = optimizer.param_groups[0]["lr"]
        assert hvd.allgather_object(lr, process_set=ends) == [0.01 * hvd.size()] * ends.size()


def frozen_in_part():
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2))
    model[0].weight.requires_grad_(False)
    return model


@pytest.mark.parametrize("settings", [{}, dict(momentum=0.9, weight_decay=0.1, nesterov=True)])
def test_optimizer_without_state_gets_gradients_of_zeros(settings):
    """As after a first step, but the parameters are left alone."""
    model = frozen_in_part()
    before = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, **settings)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_optimizer_state(optimizer, 0)
    for p, was in zip(model.parameters(), before):
        assert torch.equal(p, was)
        if p.requires_grad:
            assert torch.equal(hvd.broadcast(p.grad, 0), torch.zeros_like(p))
        else:
            assert p.grad is None
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()


def test_gradients_stay_if_there_is_state():
    model, optimizer = trained("Adam", 1)
    gradient = model.weight.grad.clone()
    hvd.broadcast_optimizer_state(optimizer, 0)
    assert torch.equal(model.weight.grad, gradient) and gradient.abs().sum() > 0


@pytest.mark.parametrize("kind", ["SparseAdam", "SGD"])
def test_sparse_parameters_get_sparse_zeros(kind):
    model = torch.nn.Sequential(torch.nn.Embedding(6, 4, sparse=True))
    optimizer = OPTIMIZERS[kind](model.parameters(), lr=0.1)
    hvd.broadcast_optimizer_state(optimizer, 0, model=model)
    (gradient,) = (p.grad for p in model.parameters())
    assert gradient.is_sparse and gradient._nnz() == 0 and gradient.shape == (6, 4)
    model(torch.arange(3)).sum().backward()
    assert model[0].weight.grad.is_sparse
    optimizer.step()
