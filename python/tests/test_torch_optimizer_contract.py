"""DistributedOptimizer's arguments, attributes, texts and small methods. On any number of ranks."""

import contextlib
import copy
import inspect
import pickle
import warnings

import pytest
import torch
import torch.nn as nn

import horovod.torch as hvd
from test_torch_optimizer import assert_same, batches, distributed, loss_of, net


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


def step(model, optimizer, batch):
    optimizer.zero_grad()
    loss_of(model, batch).backward()
    optimizer.step()


def test_signature():
    parameters = inspect.signature(hvd.DistributedOptimizer).parameters
    assert {name: p.default for name, p in parameters.items() if name != "optimizer"} == {
        "named_parameters": None,
        "compression": hvd.Compression.none,
        "backward_passes_per_step": 1,
        "op": hvd.Average,
        "gradient_predivide_factor": 1.0,
        "num_groups": 0,
        "groups": None,
        "sparse_as_dense": False,
        "process_set": hvd.global_process_set,
    }


def test_one_that_is_distributed_already_is_refused():
    model = net()
    for op in (hvd.Average, hvd.Adasum):
        with pytest.raises(ValueError, match=r"is a hvd\.DistributedOptimizer already"):
            hvd.DistributedOptimizer(hvd.DistributedOptimizer(sgd(model), op=op))


def test_texts_of_bad_arguments():
    model = net()
    params = list(model.named_parameters())
    for kwargs, text in (
        (
            dict(named_parameters=model.parameters()),
            (r"named_parameters must be pairs of a name and a parameter: pass model.named_parameters\(\)"),
        ),
        (
            dict(named_parameters=[("same", p) for _, p in params]),
            "of one name, which must differ: same",
        ),
        (dict(named_parameters=params[1:]), "named_parameters was specified, but"),
        (dict(backward_passes_per_step=0), "backward_passes_per_step must be > 0"),
        (dict(backward_passes_per_step=1.5), "must be > 0, an integer, not 1.5"),
        (dict(backward_passes_per_step="2"), "must be > 0, an integer, not '2'"),
        (dict(gradient_predivide_factor=0.0), "gradient_predivide_factor must not be 0"),
        (dict(compression="fp16"), "compression='fp16' is not one of hvd.Compression"),
        (
            dict(gradient_predivide_factor=2.0, op=hvd.Sum),
            "gradient_predivide_factor not supported with op != Average",
        ),
        (dict(groups=0), "groups must be a positive integer or a list of lists"),
        (dict(groups=-1), "groups must be"),
        (dict(groups=[[1]]), "a list of lists of torch.Tensor"),
        (dict(groups=[[params[0][1]], [params[0][1]]]), "a parameter is in two groups"),
        (dict(groups=[params[0][1]]), "groups must be"),
    ):
        with pytest.raises(ValueError, match=text):
            hvd.DistributedOptimizer(sgd(model), **kwargs)
    for given, name in (
        (model, "torch.nn.modules.container.Sequential"),
        ("sgd", "str"),
        (torch.optim.SGD, "the class SGD"),
    ):
        with pytest.raises(TypeError, match=f"^hvd.DistributedOptimizer needs a torch.optim.Optimizer, got {name}$"):
            hvd.DistributedOptimizer(given, model.named_parameters())
    with pytest.raises(TypeError, match="is not registered"):
        hvd.DistributedOptimizer(sgd(model), process_set=hvd.ProcessSet([0]))


def test_names_of_parameters():
    model = net()
    named = distributed(model, sgd(model))
    assert sorted(named._parameter_names.values()) == sorted(n for n, _ in model.named_parameters())
    model = net()
    unnamed = hvd.DistributedOptimizer(sgd(model))
    assert sorted(unnamed._parameter_names.values()) == [f"allreduce.noname.0.{i}" for i in range(4)]
    assert named.find_duplicates(["a", "b", "a"]) == {"a"}


def test_settings_are_attributes():
    model = net()
    optimizer = distributed(model, sgd(model), gradient_predivide_factor=2.0, sparse_as_dense=True)
    assert (optimizer.op, optimizer.gradient_predivide_factor) == (hvd.Average, 2.0)
    assert optimizer.sparse_as_dense is True and optimizer.process_set is hvd.global_process_set
    assert optimizer.backward_passes_per_step == 1
    optimizer.op, optimizer.gradient_predivide_factor = hvd.Sum, 1.0
    p = model[2].bias
    (p.sum() * (hvd.rank() + 1)).backward()
    optimizer.synchronize()
    assert p.grad.tolist() == [sum(range(1, hvd.size() + 1))] * 3


def test_num_groups_is_an_older_name():
    model, reference = net(), net()
    joined, mine = batches(2)
    with pytest.warns(DeprecationWarning, match="num_groups"):
        optimizer = distributed(model, sgd(model), num_groups=2)
    for batch in mine:
        step(model, optimizer, batch)
    plain = sgd(reference)
    for batch in joined:
        step(reference, plain, batch)
    assert_same(model, reference)


def test_groups_may_be_any_integer_or_iterables():
    for groups_of in (
        lambda model: torch.tensor(2),
        lambda model: [tuple(model[0].parameters())],
        lambda model: [layer.parameters() for layer in (model[0], model[2])],
    ):
        model, reference = net(), net()
        joined, mine = batches(1)
        step(model, distributed(model, sgd(model), groups=groups_of(model)), mine[0])
        step(reference, sgd(reference), joined[0])
        assert_same(model, reference)


def test_parameters_of_groups_that_are_not_the_optimizers_do_not_count():
    model, reference = net(), net()
    joined, mine = batches(2)
    optimizer = distributed(model, sgd(model[2]), groups=[list(model.parameters())])
    for batch in mine:
        step(model, optimizer, batch)
    plain = sgd(reference[2])
    for batch in joined:
        step(reference, plain, batch)
    assert_same(model, reference)


def test_groups_make_no_difference_to_adasum():
    model, grouped = net(), net()
    _, (batch,) = batches(1)
    step(model, distributed(model, sgd(model), op=hvd.Adasum), batch)
    step(grouped, distributed(grouped, sgd(grouped), op=hvd.Adasum, groups=2), batch)
    assert_same(model, grouped)


@pytest.mark.parametrize("op", [hvd.Sum, hvd.Average, hvd.Min, hvd.Max])
def test_every_reduction(op):
    p = nn.Parameter(torch.zeros(3))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([p], lr=1.0), op=op)
    (p * (hvd.rank() + 1)).sum().backward()
    optimizer.step()
    ranks = [r + 1.0 for r in range(hvd.size())]
    wanted = {
        hvd.Sum: sum(ranks),
        hvd.Average: sum(ranks) / len(ranks),
        hvd.Min: 1.0,
        hvd.Max: float(hvd.size()),
    }[op]
    assert p.tolist() == [-wanted] * 3


def test_set_backward_passes_per_step():
    model, reference = net(), net()
    joined, mine = batches(4)
    optimizer, plain = distributed(model, sgd(model)), sgd(reference)
    optimizer.set_backward_passes_per_step(4 / 2)
    assert optimizer.backward_passes_per_step == 2
    for m, o, data in ((model, optimizer, mine), (reference, plain, joined)):
        for i, batch in enumerate(data):
            loss_of(m, batch).backward()
            if i % 2:
                o.step()
                o.zero_grad()
    assert_same(model, reference)
    with pytest.raises(ValueError, match="must be > 0"):
        optimizer.set_backward_passes_per_step(0)


@pytest.mark.parametrize("set_to_none", [True, False])
def test_zero_grad(set_to_none):
    model, reference = net(), net()
    joined, mine = batches(3)
    optimizer, plain = distributed(model, sgd(model)), sgd(reference)
    for batch in mine:
        loss_of(model, batch).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=set_to_none)
        assert all((p.grad is None) == set_to_none for p in model.parameters())
    for batch in joined:
        step(reference, plain, batch)
    assert_same(model, reference)


@pytest.mark.several_ranks
def test_load_state_dict_drops_what_is_under_way():
    model, reference = net(), net()
    _, mine = batches(2)
    joined = batches(2)[0]
    optimizer, plain = distributed(model, sgd(model)), sgd(reference)
    saved = copy.deepcopy(optimizer.state_dict())
    loss_of(model, mine[0]).backward()
    optimizer.load_state_dict(saved)
    for p in model.parameters():
        p.grad = None
    step(model, optimizer, mine[1])
    step(reference, plain, joined[1])
    assert_same(model, reference)


def test_synchronize_without_a_gradient_is_a_step_of_zeros():
    model = net()
    before = copy.deepcopy(model.state_dict())
    optimizer = distributed(model, sgd(model))
    optimizer.synchronize()
    with optimizer.skip_synchronize():
        optimizer.step()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_no_warning_in_plain_use():
    model = net()
    optimizer = distributed(model, sgd(model))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for batch in batches(2)[1]:
            step(model, optimizer, batch)


@pytest.mark.several_ranks
@pytest.mark.parametrize("op", [hvd.Average, hvd.Adasum])
def test_who_is_not_in_the_process_set_steps_alone(monkeypatch, op):
    monkeypatch.setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1")
    others = hvd.add_process_set(list(range(1, hvd.size())))
    model, reference = net(), net()
    batch = batches(1)[1][0]
    optimizer = distributed(model, sgd(model), process_set=others, op=op)
    step(model, optimizer, batch)  # rank 0 needs no other rank for it
    if not others.included():
        step(reference, sgd(reference), batch)
        for p, q in zip(model.parameters(), reference.parameters()):
            assert torch.equal(p, q)
    else:
        rows = hvd.allgather(model[0].weight.detach().reshape(1, -1), process_set=others)
        assert all(torch.equal(row, rows[0]) for row in rows)
    assert hvd.remove_process_set(others)


def test_adasum_takes_accumulation_and_closures():
    model = net()
    optimizer = distributed(model, sgd(model), op=hvd.Adasum, backward_passes_per_step=2)
    for i, batch in enumerate(batches(4)[0]):  # the same on all ranks
        loss_of(model, batch).backward()
        if i % 2:
            optimizer.step()
            optimizer.zero_grad()

    def closure():
        optimizer.zero_grad()
        loss = loss_of(model, batches(1)[0][0])
        loss.backward()
        return loss

    assert optimizer.step(closure) is not None
    assert_same(model, copy.deepcopy(model))


def test_lbfgs_trains_as_one_process():
    model, reference = net(), net()
    joined, mine = batches(1)
    settings = dict(lr=0.1, max_iter=4)
    optimizer = distributed(model, torch.optim.LBFGS(model.parameters(), **settings))
    plain = torch.optim.LBFGS(reference.parameters(), **settings)
    for m, o, batch in ((model, optimizer, mine[0]), (reference, plain, joined[0])):

        def closure(m=m, o=o, batch=batch):
            o.zero_grad()
            loss = loss_of(m, batch)
            loss.backward()
            return hvd.allreduce(loss.detach(), name="loss") if m is model else loss

        o.step(closure)
    assert_same(model, reference, tolerance=1e-4)


class ByLoss(torch.optim.SGD):
    """An optimizer that decides by the closure's loss."""

    def step(self, closure=None):
        self.loss = closure()
        for group in self.param_groups:
            group["lr"] = 0.1 * float(self.loss or 0.0)
        super().step()
        return self.loss


@pytest.mark.parametrize("op", [hvd.Average, hvd.Sum])
@pytest.mark.parametrize(
    "make",
    [
        lambda params: torch.optim.LBFGS(params, lr=0.5, max_iter=4, line_search_fn="strong_wolfe"),
        lambda params: ByLoss(params, lr=0.1),
    ],
    ids=["lbfgs", "own"],
)
def test_ranks_decide_alike_by_the_loss_of_a_closure(make, op):
    model, reference = net(), net()
    joined, mine = batches(4)
    optimizer, plain = distributed(model, make(model.parameters()), op=op), make(reference.parameters())
    factor = hvd.size() if op == hvd.Sum else 1
    own, all_of_them = mine[0], joined[0]  # with others, LBFGS makes much of a rounded bit
    for _ in range(4):

        def closure():
            optimizer.zero_grad()
            loss = loss_of(model, own)
            loss.backward()
            return loss

        def closure_of_all():
            plain.zero_grad()
            loss = loss_of(reference, all_of_them) * factor
            loss.backward()
            return loss.detach()

        loss, expected = optimizer.step(closure), plain.step(closure_of_all)
        assert float(loss) == pytest.approx(float(expected), rel=1e-3)
    assert_same(model, reference, tolerance=1e-3)
    weights = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    assert torch.equal(weights, hvd.broadcast(weights, 0))


def test_losses_of_closures_that_are_not_numbers():
    model = net()
    for rank, losses in ((-1, (None, "text", (1.0, 2.0), torch.zeros(2))), (0, (3.0,))):
        for loss in losses:
            optimizer = distributed(model, ByLoss(model.parameters(), lr=0.1))
            if rank < 0:
                with contextlib.suppress(TypeError, ValueError, RuntimeError):
                    optimizer.step(lambda loss=loss: loss)
                assert optimizer.loss is loss
            else:
                assert optimizer.step(lambda loss=loss: loss if hvd.rank() == 0 else None) == 3.0


class Around(torch.optim.Optimizer):
    """An optimizer around another one, whose groups and state are properties; its state dict and step() look different, too."""

    def __init__(self, inner):
        self.inner, self.defaults, self.count = inner, {}, 0

    param_groups = property(lambda self: self.inner.param_groups)
    state = property(lambda self: self.inner.state)

    def state_dict(self):
        return {"inner": self.inner.state_dict(), "count": self.count}

    def load_state_dict(self, state):
        self.inner.load_state_dict(state["inner"])
        self.count = state["count"]

    def zero_grad(self, set_to_none=True):
        self.inner.zero_grad(set_to_none)

    def step(self, and_then=None):
        self.count += 1
        return self.inner.step(and_then)


@pytest.mark.parametrize("op", [hvd.Average, hvd.Adasum])
def test_optimizer_around_another_one(op):
    model, reference = net(), net()
    joined, mine = batches(4)
    data = joined if op == hvd.Adasum else mine
    inner = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    optimizer = distributed(model, Around(inner), op=op)
    plain = Around(torch.optim.SGD(reference.parameters(), lr=0.1, momentum=0.5))
    optimizer.count = hvd.rank()
    for _ in range(2):  # without state, and with
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        step(model, optimizer, data[0])
        step(reference, plain, joined[0])
    assert optimizer.count == 2
    hvd.broadcast_optimizer_state(plain, root_rank=0)
    for batch, whole in zip(data[1:], joined[1:]):
        for m, o, b in ((model, optimizer, batch), (reference, plain, whole)):

            def closure(m=m, o=o, b=b):
                o.zero_grad()
                loss = loss_of(m, b)
                loss.backward()
                return loss

            o.step(closure)
    assert_same(model, reference, tolerance=1e-4)


class Copied(torch.optim.SGD):
    def __getstate__(self):
        return self.__dict__.copy()


def test_copy_of_an_optimizer_with_a_state_of_its_own():
    model = net()
    optimizer = distributed(model, Copied(model.parameters(), lr=0.1))
    model, optimizer = pickle.loads(pickle.dumps((model, optimizer)))
    step(model, optimizer, batches(1)[1][0])
    assert_same(model, model)


@pytest.mark.parametrize("op", [hvd.Average, hvd.Adasum])
def test_scheduler_of_the_wrapped_optimizer_sees_its_steps(op):
    model = net()
    inner = sgd(model)
    before = torch.optim.lr_scheduler.StepLR(inner, step_size=1, gamma=0.5)
    optimizer = distributed(model, inner, op=op)
    after = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for batch in batches(2)[1]:
            step(model, optimizer, batch)
            before.step()
            after.step()
    assert optimizer.param_groups[0]["lr"] == 0.1 * 0.5**4


@pytest.mark.parametrize("compiler", [False, True])
def test_warnings_point_at_the_script(compiler):
    if compiler:
        pytest.importorskip("torch._dynamo")
    model = net()
    with pytest.warns(DeprecationWarning) as found:
        optimizer = distributed(model, sgd(model), num_groups=1)
        hvd.allreduce(torch.ones(1), average=True, name="old")
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1)  # wraps step()
    loss_of(model, batches(1)[1][0]).backward()
    optimizer.synchronize()
    with pytest.warns(UserWarning) as later:
        optimizer.step()
    scheduler.step()
    places = {warning.filename for warning in (*found, *later)}
    assert places <= {__file__, distributed.__code__.co_filename} and len(later) == 1
