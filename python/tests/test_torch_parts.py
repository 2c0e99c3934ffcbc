"""Values of a TorchState that hold modules, optimizers, tensors and other objects with a state of their own."""

import collections
import random
import types

import numpy
import pytest
import torch

import horovod.torch as hvd
from agents_store import enter, new_process
from elastic_training import assert_equal

Pair = collections.namedtuple("Pair", ["net", "note"])


class Warmup:
    """A scheduler of no class of torch's."""

    def __init__(self, optimizer):
        self.optimizer, self.steps, self.tensor = optimizer, 0, torch.zeros(2)

    def step(self):
        self.steps += 1
        self.tensor += 1
        self.optimizer.param_groups[0]["lr"] = 0.1 * self.steps

    def state_dict(self):
        return {"steps": self.steps, "tensor": self.tensor}

    def load_state_dict(self, state):
        self.steps, self.tensor = state["steps"], state["tensor"].clone()


def net(value=0.0):
    module = torch.nn.Linear(2, 1)
    with torch.no_grad():
        module.weight.fill_(value)
    return module


def optimizer_of(*nets):
    return torch.optim.SGD([p for module in nets for p in module.parameters()], 0.1, momentum=0.9)


def train(module, optimizer):
    optimizer.zero_grad()
    module(torch.ones(1, 2)).sum().backward()
    optimizer.step()


class Values:
    """One of each kind: what a script keeps, changes of all of it, and its present contents."""

    def __init__(self, seed=0):
        self.nets = [net(seed), net(seed + 1)]
        self.optimizers = {"g": optimizer_of(self.nets[0]), "d": optimizer_of(self.nets[1])}
        self.warmup = Warmup(self.optimizers["g"])
        self.deep = {"pairs": [Pair(net(seed), "note"), (net(seed), {"step": 0})], "names": ["a"]}
        self.ema = {name: value.clone() for name, value in self.nets[0].state_dict().items()}
        self.mean = torch.full((3,), float(seed))
        self.channels = [torch.full((2, 3, 4, 4), float(seed)).contiguous(memory_format=torch.channels_last)]
        self.parameters = [torch.nn.Parameter(torch.full((2,), float(seed)))]
        self.generator = torch.Generator().manual_seed(seed)
        self.random = [numpy.random.default_rng(seed), numpy.random.RandomState(seed), random.Random(seed)]
        self.counts = collections.defaultdict(float, {"seen": torch.tensor(float(seed))})

    def state(self):
        return hvd.elastic.TorchState(**vars(self), step=0)

    def change(self):
        train(self.nets[0], self.optimizers["g"])
        train(self.nets[1], self.optimizers["d"])
        self.warmup.step()
        train(self.deep["pairs"][0].net, optimizer_of(self.deep["pairs"][0].net))
        self.deep["pairs"][1][1]["step"] += 1
        self.deep["names"].append("b")
        for value in (*self.ema.values(), self.mean, *self.channels, self.counts["seen"]):
            value.add_(1)
        self.parameters[0].data += 1
        self.draw()

    def draw(self):
        return (
            torch.rand(1, generator=self.generator).item(),
            *(source.random() for source in self.random[::2]),
            self.random[1].rand(),
        )

    def contents(self):
        pairs = self.deep["pairs"]
        return [
            [module.state_dict() for module in (*self.nets, pairs[0].net, pairs[1][0])],
            [optimizer.state_dict()["state"] for optimizer in self.optimizers.values()],
            [self.warmup.steps, self.warmup.tensor, self.deep["names"], pairs[0].note, pairs[1][1]],
            [self.ema, self.mean, *self.channels, *(p.detach() for p in self.parameters), dict(self.counts)],
            [self.generator.get_state(), self.random[0].bit_generator.state, self.random[2].getstate()],
            list(self.random[1].get_state()[1]),
        ]

    def copied(self):
        import copy

        return copy.deepcopy(self.contents())

    def objects(self):
        """All that has to stay the same object."""
        pairs = self.deep["pairs"]
        found = [
            *self.nets,
            *self.optimizers.values(),
            self.warmup,
            self.nets,
            self.optimizers,
            self.deep,
            pairs,
            pairs[0],
        ]
        found += [pairs[0].net, pairs[1], pairs[1][1], self.deep["names"], self.ema, *self.ema.values(), self.mean]
        return [
            *found,
            *self.channels,
            *self.parameters,
            self.generator,
            *self.random,
            self.counts,
            self.counts["seen"],
        ]


def test_parts_are_restored_in_place():
    values = Values()
    state = values.state()
    values.change()
    state.commit()
    committed, objects = values.copied(), values.objects()
    for _ in range(2):
        values.change()
        state.restore()
        assert_equal(values.contents(), committed)
        assert all(now is before for now, before in zip(values.objects(), objects))
        assert all(getattr(state, name) is value for name, value in vars(values).items())
    drawn = values.draw()
    state.restore()
    assert values.draw() == drawn
    values.warmup.step()
    assert values.optimizers["g"].param_groups[0]["lr"] == pytest.approx(0.2)


def test_all_ranks_get_rank_0s_parts():
    values = Values(hvd.rank())
    state, objects = values.state(), values.objects()
    if hvd.rank() == 0:
        values.change()
    state.sync()
    for theirs in hvd.allgather_object(values.contents()):
        assert_equal(theirs, values.contents())
    assert all(now is before for now, before in zip(values.objects(), objects))
    assert len(set(hvd.allgather_object(values.draw()))) == 1


def test_gradients_of_parts_are_dropped_on_restore():
    values = Values()
    state = values.state()
    values.nets[1](torch.ones(1, 2)).sum().backward()
    state.restore()
    assert (values.nets[1].weight.grad == 0).all()


def test_values_may_become_tensors_and_grow():
    state = hvd.elastic.TorchState(best=None, losses=[], ema={})
    losses, ema = state.losses, state.ema
    state.commit()
    state.best, ema["w"] = torch.ones(2), torch.ones(3)
    losses.append(torch.tensor(1.0))
    state.commit()
    kept = state.best
    losses.append(torch.tensor(2.0))
    ema["w"].add_(1)
    ema["more"] = torch.ones(1)
    state.best.add_(5)
    state.restore()
    assert (
        state.losses is losses and losses == [1.0] and state.ema is ema and list(ema) == ["w"] and ema["w"].sum() == 3
    )
    assert state.best is kept and kept.sum() == 2
    state.best, state.losses = 7, "none"
    state.restore()
    assert state.best.sum() == 2 and state.losses == [1.0]
    state.best = torch.ones(4)
    state.commit()
    state.best = None
    state.restore()
    assert state.best.sum() == 4


def test_failed_commit_leaves_a_value_plain():
    state = hvd.elastic.TorchState(best=None, other=0)
    state.commit()
    state.best, state.other = torch.ones(2), (n for n in range(3))  # can't be copied
    with pytest.raises(TypeError):
        state.commit()
    state.restore()
    assert state.best is None and state.other == 0


def test_newcomer_gets_values_that_became_tensors():
    state = hvd.elastic.TorchState(best=None, ema={})
    if hvd.rank() == 0:
        state.best, state.ema["w"] = torch.ones(2), torch.ones(3)
    state.sync()
    assert state.best.sum() == 2 and state.ema["w"].sum() == 3
    state.restore()
    assert state.best.sum() == 2 and state.ema["w"].sum() == 3


class Holder:
    def __init__(self, **inner):
        vars(self).update(inner)


class Slotted:
    __slots__ = ("inner",)

    def __init__(self, inner):
        self.inner = inner


@pytest.mark.parametrize(
    "value, path, kind",
    [
        (lambda: Holder(net=net()), "TorchState.value.net", "Linear"),
        (lambda: [1, {"a": Holder(inner=[torch.ones(1)])}], "TorchState.value[1]['a'].inner[0]", "Tensor"),
        (lambda: {net()}, "TorchState.value[0]", "Linear"),
        (lambda: collections.deque([torch.ones(1)]), "TorchState.value[0]", "Tensor"),
        (lambda: Slotted(torch.Generator()), "TorchState.value.inner", "Generator"),
        (lambda: types.SimpleNamespace(warmup=Warmup(None)), "TorchState.value.warmup", "Warmup"),
        (lambda: Holder(o=optimizer_of(net())), "TorchState.value.o", "SGD"),
        (lambda: net().forward, "TorchState.value.__self__", "Linear"),
    ],
)
def test_part_in_an_unsupported_place_is_refused(value, path, kind):
    error = f"{path} is a {kind}, of which a copy would be restored there: give it to the state as a value of its own"
    with pytest.raises(ValueError, match="^" + error.translate(str.maketrans({c: "\\" + c for c in "[]."}))):
        hvd.elastic.TorchState(value=value())
    state = hvd.elastic.TorchState(value=None)
    state.value = value()
    with pytest.raises(ValueError):
        state.commit()
    state.value = 3
    state.commit()


def test_module_that_is_assigned_to_a_plain_value_is_refused():
    state = hvd.elastic.TorchState(teacher=None)
    state.teacher = net()
    with pytest.raises(
        ValueError, match=r"^TorchState\.teacher has a Linear, of which a copy .+ give it to the state when you make it"
    ):
        state.commit()


def test_list_that_lost_a_module_says_which():
    state = hvd.elastic.TorchState(nets=[net(), net()])
    state.commit()
    state.nets.pop()
    with pytest.raises(ValueError, match=r"\[1\] is no object here that could take the state saved for it"):
        state.restore()


@pytest.mark.parametrize(
    "value, path",
    [(lambda: net(), "net"), (lambda: [Warmup(None)], r"net\[0\]"), (lambda: Holder(a=torch.ones(1)), r"net\.a")],
)
def test_object_state_refuses_values_that_it_can_not_restore(value, path):
    with pytest.raises(ValueError, match=rf"^ObjectState\.{path} is a .+: use the state of your framework"):
        hvd.elastic.ObjectState(net=value())
    state = hvd.elastic.ObjectState(net=None)
    state.net = value()
    with pytest.raises(ValueError):
        state.commit()


def test_value_that_contains_itself_is_plain():
    loop = [1]
    loop.append(loop)
    state = hvd.elastic.TorchState(loop=loop)
    state.commit()


# Commits that outlive the process, and checkpoints.


@pytest.fixture
def alone():
    if hvd.size() > 1:
        pytest.skip("in one process")


def test_parts_outlive_their_process(alone, store, monkeypatch):
    values = Values()
    state = values.state()
    for _ in range(3):
        values.change()
        state.commit()
    committed = values.copied()
    new_process(monkeypatch)
    values = Values(5)
    state, objects = values.state(), values.objects()
    enter(state)
    assert_equal(values.contents(), committed)
    assert all(now is before for now, before in zip(values.objects(), objects))
    values.change()
    state.restore()
    assert_equal(values.contents(), committed)


def test_values_that_became_tensors_outlive_their_process(alone, store, monkeypatch):
    state = hvd.elastic.TorchState(best=None, count=torch.zeros(1))
    state.best, state.count = torch.ones(2), 5
    state.commit()
    new_process(monkeypatch)
    state = hvd.elastic.TorchState(best=None, count=torch.zeros(1))
    enter(state)
    assert state.best.sum() == 2 and state.count == 5
    state.best = None
    state.restore()
    assert state.best.sum() == 2 and state.count == 5


def test_parts_are_in_checkpoints(alone, monkeypatch, tmp_path):
    values = Values()
    state = hvd.elastic.TorchState(**vars(values), checkpoint_dir=str(tmp_path))
    values.change()
    state.commit()
    state._checkpoints.wait()
    committed = values.copied()
    new_process(monkeypatch)
    values = Values(5)
    state, objects = hvd.elastic.TorchState(**vars(values), checkpoint_dir=str(tmp_path)), values.objects()
    state.sync()
    assert_equal(values.contents(), committed)
    assert all(now is before for now, before in zip(values.objects(), objects))
