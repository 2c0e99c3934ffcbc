"""DistributedOptimizer against one process that trains on the ranks' joined batches. Runs on any
number of ranks."""

import copy
import pickle

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

import horovod.torch as hvd
from optimizer_training import (
    BATCH,
    OPTIMIZERS,
    assert_same,
    batches,
    distributed,
    loss_of,
    net,
    train,
)


@pytest.mark.parametrize("kind", sorted(OPTIMIZERS))
@pytest.mark.parametrize("groups", [None, 1, 2, "lists"])
def test_equals_one_process(kind, groups):
    model, reference = net(), net()
    joined, mine = batches(5)
    if groups == "lists":
        groups = [[model[0].weight, model[2].bias]]
    optimizer = distributed(model, OPTIMIZERS[kind](model.parameters()), groups=groups)
    train(model, optimizer, mine)
    train(reference, OPTIMIZERS[kind](reference.parameters()), joined)
    assert_same(model, reference)


class CountedLooks(list):
    """A list that counts how often an element of it is looked at."""

    looks = 0

    def __iter__(self):
        for element in super().__iter__():
            self.looks += 1
            yield element

    def __getitem__(self, index):
        self.looks += 1
        return super().__getitem__(index)


def test_a_step_looks_at_each_parameter_of_a_group_a_few_times():
    layers = nn.Sequential(*[nn.Linear(1, 1) for _ in range(100)])
    group = CountedLooks(layers.parameters())
    optimizer = distributed(layers, torch.optim.SGD(layers.parameters(), lr=0.1), groups=[group])
    for _ in range(2):
        group.looks = 0
        layers(torch.ones(1, 1)).sum().backward()
        optimizer.step()
        assert group.looks <= 4 * len(group)
        optimizer.zero_grad()


def test_without_names():
    model, reference = net(), net()
    joined, mine = batches(3)
    optimizer = hvd.DistributedOptimizer(OPTIMIZERS["sgd"](model.parameters()))
    train(model, optimizer, mine)
    train(reference, OPTIMIZERS["sgd"](reference.parameters()), joined)
    assert_same(model, reference)


@pytest.mark.parametrize("count", [6, 7])  # 7: the last group is short
def test_accumulation(count):
    model, reference = net(), net()
    joined, mine = batches(count)
    optimizer = distributed(model, OPTIMIZERS["adam"](model.parameters()), backward_passes_per_step=3)
    for _ in range(2):  # a second epoch begins with fresh counts
        train(model, optimizer, mine, accumulate=3)
    reference_optimizer = OPTIMIZERS["adam"](reference.parameters())
    for _ in range(2):
        train(reference, reference_optimizer, joined, accumulate=3)
    assert_same(model, reference)


@pytest.mark.parametrize("predivide", [0.5, 4.0])
def test_predivide(predivide):
    model, reference = net(), net()
    joined, mine = batches(3)
    optimizer = distributed(model, OPTIMIZERS["sgd"](model.parameters()), gradient_predivide_factor=predivide)
    train(model, optimizer, mine)
    train(reference, OPTIMIZERS["sgd"](reference.parameters()), joined)
    assert_same(model, reference)


def test_compression():
    model, reference = net(), net()
    joined, mine = batches(3)
    optimizer = distributed(model, OPTIMIZERS["sgd"](model.parameters()), compression=hvd.Compression.fp16)
    train(model, optimizer, mine)
    train(reference, OPTIMIZERS["sgd"](reference.parameters()), joined)
    assert_same(model, reference, tolerance=1e-2)


class Branches(nn.Module):
    """Uses the branch that the caller chooses."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.branches = nn.ModuleList([nn.Linear(6, 3) for _ in range(3)])

    def forward(self, x, branch):
        return self.branches[branch](x)


@pytest.mark.parametrize("groups", [None, 2])
def test_unused_parameters_count_as_zeros(groups):
    """Every rank uses another branch."""
    model, reference = Branches(), Branches()
    joined, mine = batches(3)
    optimizer = distributed(model, torch.optim.SGD(model.parameters(), lr=0.1), groups=groups)
    plain = torch.optim.SGD(reference.parameters(), lr=0.1)
    for step in range(3):
        x, y = mine[step]
        F.mse_loss(model(x, (hvd.rank() + step) % 2), y).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        for rank in range(hvd.size()):
            x, y = (t[BATCH * rank : BATCH * (rank + 1)] for t in joined[step])
            (F.mse_loss(reference(x, (rank + step) % 2), y) / hvd.size()).backward()
        plain.step()
        plain.zero_grad()
    assert_same(model, reference)


@pytest.mark.skipif(not hasattr(torch.Tensor, "grad_dtype"), reason="gradients have their parameters' type")
@pytest.mark.parametrize("compression", [hvd.Compression.none, hvd.Compression.fp16])
def test_unused_parameters_get_zeros_of_the_chosen_type(compression):
    """Every rank uses another branch."""
    if hvd.size() == 1:
        pytest.skip("a single rank reduces nothing, so unused parameters have no gradient")
    model = Branches().bfloat16()
    for p in model.parameters():
        p.grad_dtype = torch.float32
    optimizer = distributed(model, torch.optim.SGD(model.parameters(), lr=0.1), op=hvd.Sum, compression=compression)
    model(torch.ones(1, 6, dtype=torch.bfloat16), hvd.rank() % 2).sum().backward()
    optimizer.synchronize()
    users = [sum(rank % 2 == branch for rank in range(hvd.size())) for branch in range(3)]
    for branch, count in zip(model.branches, users):
        assert branch.bias.grad.dtype == torch.float32
        assert branch.bias.grad.tolist() == 3 * [float(count)]


def test_adasum_of_equal_steps_is_the_step():
    model, reference = net(), net()
    joined, _ = batches(3)
    optimizer = distributed(model, OPTIMIZERS["sgd"](model.parameters()), op=hvd.Adasum)
    train(model, optimizer, joined)
    train(reference, OPTIMIZERS["sgd"](reference.parameters()), joined)
    assert_same(model, reference, tolerance=1e-4)
    with pytest.raises(AssertionError), optimizer.skip_synchronize():
        pass


@pytest.mark.parametrize("op", [hvd.Average, hvd.Adasum])
def test_reading_the_learning_rate_waits_for_no_other_rank(op):
    """A gradient is missing, while the other ranks wait for another operation."""
    model = nn.ModuleDict({"used": net(), "unused": nn.Linear(2, 2)})
    _, (batch,) = batches(1)
    optimizer = distributed(model, OPTIMIZERS["sgd"](model.parameters()), op=op)
    loss_of(model["used"], batch).backward()
    if hvd.rank() == 0:
        assert optimizer.param_groups[0]["lr"] == 0.1
    hvd.barrier()
    optimizer.step()
    assert_same(model, copy.deepcopy(model))


def test_gradients_arrive_in_two_backward_passes_with_a_look_between():
    first, second = nn.Linear(2, 1), nn.Linear(2, 1)
    layers = nn.ModuleList([first, second])
    optimizer = distributed(layers, torch.optim.SGD(layers.parameters(), lr=1.0), op=hvd.Sum)
    for layer in layers:
        layer(torch.ones(1, 2) * (hvd.rank() + 1)).sum().backward()
        assert optimizer.param_groups[0]["lr"] == 1.0
    optimizer.step()
    total = float(sum(range(1, hvd.size() + 1)))
    assert first.weight.grad.tolist() == second.weight.grad.tolist() == [[total, total]]
    assert first.bias.grad.tolist() == second.bias.grad.tolist() == [hvd.size()]


def test_clipping_by_synchronize():
    model, reference = net(), net()
    joined, mine = batches(3)
    optimizer = distributed(model, OPTIMIZERS["sgd"](model.parameters()))
    plain = OPTIMIZERS["sgd"](reference.parameters())
    for batch, whole in zip(mine, joined):
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        optimizer.synchronize()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        with optimizer.skip_synchronize():
            optimizer.step()
        plain.zero_grad()
        loss_of(reference, whole).backward()
        nn.utils.clip_grad_norm_(reference.parameters(), 0.1)
        plain.step()
    assert_same(model, reference)


def test_synchronize_and_step_warns():
    model = net()
    optimizer = distributed(model, OPTIMIZERS["sgd"](model.parameters()))
    loss_of(model, batches(1)[1][0]).backward()
    optimizer.synchronize()
    with pytest.warns(UserWarning, match=r"call it within `with optimizer\.skip_synchronize"):
        optimizer.step()


def test_step_after_synchronize_does_not_reduce_again():
    p = torch.nn.Parameter(torch.zeros(2))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([p], lr=1.0), op=hvd.Sum)
    p.sum().backward()
    optimizer.synchronize()
    with pytest.warns(UserWarning):
        optimizer.step()
    assert p.tolist() == [-hvd.size()] * 2


@pytest.mark.parametrize("op", [hvd.Average, hvd.Adasum])
def test_parameters_that_are_frozen_later_are_left_alone(op):
    frozen, trained = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([frozen, trained], lr=0.5, weight_decay=0.1)
    optimizer = hvd.DistributedOptimizer(optimizer, [("frozen", frozen), ("trained", trained)], op=op)
    frozen.requires_grad_(False)
    for _ in range(2):
        optimizer.zero_grad()
        trained.sum().backward()
        optimizer.step()
    assert frozen.tolist() == [1.0, 1.0] and frozen.grad is None and (trained < 0.5).all()


def test_closure():
    model, reference = net(), net()
    joined, mine = batches(2)
    optimizer = distributed(model, OPTIMIZERS["sgd"](model.parameters()))
    plain = OPTIMIZERS["sgd"](reference.parameters())
    for m, o, data in ((model, optimizer, mine), (reference, plain, joined)):
        for batch in data:

            def closure(m=m, o=o, batch=batch):
                o.zero_grad()
                loss = loss_of(m, batch)
                loss.backward()
                return loss

            assert o.step(closure) is not None
    assert_same(model, reference)


def sparse_training(as_dense):
    """A model and its distributed optimizer, and a copy of it with a plain one."""
    torch.manual_seed(1)
    model = nn.Embedding(10, 4, sparse=True)
    reference = copy.deepcopy(model)
    optimizer = distributed(model, torch.optim.SGD(model.parameters(), lr=0.5), sparse_as_dense=as_dense)
    plain = torch.optim.SGD(reference.parameters(), lr=0.5)
    return model, optimizer, reference, plain


@pytest.mark.parametrize("as_dense", [False, True])
def test_sparse_gradients(as_dense):
    model, optimizer, reference, plain = sparse_training(as_dense)
    for step in range(2):
        optimizer.zero_grad()
        model(torch.tensor([hvd.rank(), 5 + step])).sum().backward()
        optimizer.step()
        plain.zero_grad()
        for rank in range(hvd.size()):
            (reference(torch.tensor([rank, 5 + step])).sum() / hvd.size()).backward()
        plain.step()
    assert_same(model, reference)


@pytest.mark.parametrize("set_to_none", [False, True])
@pytest.mark.parametrize("as_dense", [False, True])
def test_a_rank_without_a_sparse_gradient_takes_part_with_zeros(as_dense, set_to_none):
    model, optimizer, reference, plain = sparse_training(as_dense)
    for step in range(4):
        idle = 0 if step in (1, 2) else None
        optimizer.zero_grad(set_to_none=set_to_none)
        if hvd.rank() != idle:
            model(torch.tensor([hvd.rank(), 5 + step])).sum().backward()
        optimizer.step()
        plain.zero_grad()
        for rank in range(hvd.size()):
            if rank != idle:
                (reference(torch.tensor([rank, 5 + step])).sum() / hvd.size()).backward()
        plain.step()
    assert_same(model, reference)


@pytest.mark.several_ranks
def test_zero_grad_fails_while_gradients_are_reduced():
    """Inside of backward(); afterwards they are."""
    model = net()
    batch = batches(1)[1][0]
    optimizer = distributed(model, OPTIMIZERS["sgd"](model.parameters()))
    handle = model[0].weight.register_hook(lambda _: optimizer.zero_grad())
    with pytest.raises(AssertionError, match="zero_grad"):
        loss_of(model, batch).backward()
    handle.remove()
    optimizer.synchronize()
    optimizer.zero_grad()
    train(model, optimizer, [batch])


def test_bad_arguments_fail():
    model = net()
    params = dict(model.named_parameters())
    sgd = OPTIMIZERS["sgd"](model.parameters())
    for kwargs in (
        dict(named_parameters=list(model.parameters())),
        dict(named_parameters=[("same", p) for p in model.parameters()]),
        dict(named_parameters=list(params.items())[:2]),
        dict(backward_passes_per_step=0),
        dict(gradient_predivide_factor=2.0, op=hvd.Sum),
        dict(groups=0),
        dict(groups=["a"]),
        dict(groups=[[model[0].weight], [model[0].weight]]),
    ):
        with pytest.raises(ValueError):
            hvd.DistributedOptimizer(sgd, **kwargs)
    with pytest.raises(ValueError, match="already"):
        hvd.DistributedOptimizer(distributed(model, sgd))


def test_is_the_optimizer_it_wraps():
    model = net()
    sgd = OPTIMIZERS["sgd"](model.parameters())
    optimizer = distributed(model, sgd)
    assert isinstance(optimizer, torch.optim.SGD) and type(optimizer).__name__ == "SGD"
    assert type(optimizer).__module__ == "horovod.torch.optimizer"
    assert optimizer.param_groups is sgd.param_groups and optimizer.state is sgd.state
    # Loading keeps what a scheduler made for the inner optimizer holds.
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert optimizer.param_groups is sgd.param_groups and optimizer.state is sgd.state
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    train(model, optimizer, batches(1)[1])
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.05


@pytest.mark.parametrize("groups", [None, 2])
@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))], ids=["copy", "pickle"]
)
def test_copies_and_pickles_continue_as_the_original(copied, groups):
    model, reference = net(), net()
    joined, mine = batches(4)
    optimizer = distributed(model, OPTIMIZERS["adam"](model.parameters()), groups=groups)
    train(model, optimizer, mine[:2])
    optimizer.set_backward_passes_per_step(2)
    again, its_optimizer = copied((model, optimizer))
    assert isinstance(its_optimizer, torch.optim.Adam)
    assert its_optimizer.backward_passes_per_step == 2
    its_optimizer.set_backward_passes_per_step(1)
    train(again, its_optimizer, mine[2:])
    train(reference, OPTIMIZERS["adam"](reference.parameters()), joined)
    assert_same(again, reference)


def test_a_copy_asks_no_other_rank():
    model = net()
    for op, groups in ((hvd.Average, 2), (hvd.Adasum, None)):
        optimizer = distributed(model, OPTIMIZERS["sgd"](model.parameters()), op=op, groups=groups)
        if hvd.rank() == 0:
            copy.deepcopy((model, optimizer))


def test_added_parameters_are_reduced_too():
    model, extra = net(), nn.Linear(3, 1)
    hvd.broadcast_parameters(extra.state_dict(), 0)
    optimizer = distributed(model, torch.optim.SGD(model.parameters(), lr=0.1))
    optimizer.add_param_group({"params": list(extra.parameters())})
    for x, _ in batches(2)[1]:
        optimizer.zero_grad()
        extra(model(x)).sum().backward()
        optimizer.step()
    assert_same(extra, extra)


@pytest.mark.parametrize("kind", sorted(OPTIMIZERS))
def test_broadcast_optimizer_state(kind):
    """Only rank 0 has state; afterwards all ranks train alike."""
    model = net()
    plain = OPTIMIZERS[kind](model.parameters())
    if hvd.rank() == 0:
        train(model, plain, batches(2)[0])
    else:
        plain.param_groups[0]["lr"] = 77.0
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(plain, root_rank=0)
    assert plain.param_groups[0]["lr"] < 1
    optimizer = distributed(model, plain)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    train(model, optimizer, batches(2)[1])
    assert_same(model, model)
