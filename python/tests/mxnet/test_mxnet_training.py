"""Training with horovod.mxnet: the ranks train as one process does on their joined batches."""

import pickle

import mxnet as mx
import numpy
import pytest
from mxnet import gluon

import horovod.mxnet as hvd

BATCH, FEATURES, STEPS = 4, 5, 4  # of a rank
CLOSE = dict(rtol=1e-5, atol=1e-6)


def batches():
    """The joined batches of all ranks, and this rank's part of each."""
    random = numpy.random.RandomState(0)
    own = slice(BATCH * hvd.rank(), BATCH * (hvd.rank() + 1))
    for _ in range(STEPS):
        inputs = random.rand(BATCH * hvd.size(), FEATURES).astype("float32")
        targets = random.rand(BATCH * hvd.size(), 1).astype("float32")
        yield (inputs, targets), (inputs[own], targets[own])


def net_of(seed, in_units=FEATURES):
    """0 for `in_units`: shapes are not known before the first batch."""
    mx.random.seed(seed)
    numpy.random.seed(seed)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(8, activation="relu", in_units=in_units), gluon.nn.Dense(1, in_units=8 if in_units else 0))
    net.initialize(mx.init.Xavier())
    return net


def train(net, trainer, parts):
    for inputs, targets in parts:
        with mx.autograd.record():
            loss = gluon.loss.L2Loss()(net(mx.nd.array(inputs)), mx.nd.array(targets))
        loss.backward()
        trainer.step(len(inputs))


def weights(net):
    return [param.data().asnumpy() for param in net.collect_params().values()]


def alone(optimizer, options):
    """The weights of one process on the joined batches."""
    net = net_of(0)
    train(net, gluon.Trainer(net.collect_params(), optimizer, dict(options), kvstore=None), [b for b, _ in batches()])
    return weights(net)


def assert_close(found, expected, **tolerance):
    for one, other in zip(found, expected):
        numpy.testing.assert_allclose(one, other, **{**CLOSE, **tolerance})


def own_parts():
    return [part for _, part in batches()]


SGD = ("sgd", {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.01})
ADAM = ("adam", {"learning_rate": 0.01})
CLIPPED = ("sgd", {"learning_rate": 0.1, "clip_gradient": 0.05})  # of the average: not of a rank's gradient


@pytest.mark.parametrize("optimizer, options", [SGD, ADAM, CLIPPED])
@pytest.mark.parametrize(
    "arguments",
    [{}, {"num_groups": 2}, {"num_groups": 9}, {"gradient_predivide_factor": 2.0, "prefix": "net"}],
    ids=str,
)
def test_trainer_equals_one_process(optimizer, options, arguments):
    net = net_of(0)
    train(net, hvd.DistributedTrainer(net.collect_params(), optimizer, options, **arguments), own_parts())
    assert_close(weights(net), alone(optimizer, options))


def test_trainer_with_compression():
    net = net_of(0)
    trainer = hvd.DistributedTrainer(net.collect_params(), *SGD, compression=hvd.Compression.fp16)
    train(net, trainer, own_parts())
    assert_close(weights(net), alone(*SGD), rtol=1e-2, atol=1e-3)
    assert net[0].weight.grad().dtype is numpy.float32


def test_gradients_are_averages_after_allreduce_grads():
    net = net_of(0)
    trainer = hvd.DistributedTrainer(net.collect_params(), *SGD)
    weight = net[1].bias
    with mx.autograd.record():
        loss = net(mx.nd.ones((BATCH, FEATURES))) * (hvd.rank() + 1)
    loss.backward()
    trainer.allreduce_grads()
    numpy.testing.assert_allclose(weight.grad().asnumpy(), [BATCH * (hvd.size() + 1) / 2])
    trainer.update(BATCH)


def test_frozen_parameters_and_a_list_of_parameters():
    net = net_of(0)
    net[0].collect_params().setattr("grad_req", "null")
    before = net[0].weight.data().asnumpy()
    trainer = hvd.DistributedTrainer(list(net.collect_params().values()), *SGD)
    train(net, trainer, own_parts())
    assert numpy.array_equal(net[0].weight.data().asnumpy(), before)
    last = net[1].weight.data()
    assert numpy.array_equal(hvd.broadcast(last, 0).asnumpy(), last.asnumpy())


@pytest.mark.parametrize("optimizer, options", [SGD, ADAM, CLIPPED])
@pytest.mark.parametrize("num_groups", [0, 2])
def test_optimizer_equals_one_process(optimizer, options, num_groups):
    """Within a plain Trainer, which sets `rescale_grad` and the parameters' own rates."""
    net = net_of(0)
    net[0].weight.lr_mult = 1.0
    wrapped = hvd.DistributedOptimizer(mx.optimizer.create(optimizer, **options), num_groups=num_groups)
    train(net, gluon.Trainer(net.collect_params(), wrapped, kvstore=None), own_parts())
    assert_close(weights(net), alone(optimizer, options))


def module_trained(parts, batch, optimizer):
    inputs = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, name="dense")
    module = mx.mod.Module(mx.sym.LinearRegressionOutput(inputs, name="target"), label_names=["target_label"])
    module.bind([("data", (batch, FEATURES))], [("target_label", (batch, 1))])
    start = {"dense_weight": mx.nd.ones((1, FEATURES)) / 9, "dense_bias": mx.nd.zeros((1,))}
    module.init_params(arg_params=start)
    module.init_optimizer(kvstore=None, optimizer=optimizer)
    for values, targets in parts:
        module.forward_backward(mx.io.DataBatch([mx.nd.array(values)], [mx.nd.array(targets)]))
        module.update()
    return [array.asnumpy() for _, array in sorted(module.get_params()[0].items())]


def test_optimizer_of_a_module_equals_one_process():
    joined = [joined for joined, _ in batches()]
    plain = mx.optimizer.SGD(learning_rate=0.1, rescale_grad=1 / BATCH / hvd.size())
    expected = module_trained(joined, BATCH * hvd.size(), plain)
    inner = mx.optimizer.SGD(learning_rate=0.1, rescale_grad=1 / BATCH)
    assert_close(module_trained(own_parts(), BATCH, hvd.DistributedOptimizer(inner)), expected)


def test_optimizers_attributes_are_those_within():
    inner = mx.optimizer.SGD(learning_rate=0.5, momentum=0.25)
    wrapped = hvd.DistributedOptimizer(inner)
    assert isinstance(wrapped, mx.optimizer.Optimizer)
    assert (wrapped.momentum, wrapped.learning_rate, wrapped.rescale_grad) == (0.25, 0.5, 1.0)
    wrapped.rescale_grad = 0.125
    wrapped.set_learning_rate(0.75)
    wrapped.set_lr_mult({0: 2.0})
    assert (inner.rescale_grad, inner.lr, inner.lr_mult) == (0.125, 0.75, {0: 2.0})
    with pytest.raises(AttributeError, match="nonsense"):
        wrapped.nonsense  # noqa: B018


def test_states_of_a_trainer_are_saved_with_the_optimizer(tmp_path):
    net = net_of(0)
    with pytest.raises(TypeError, match=r"needs an mxnet\.optimizer\.Optimizer, got str"):
        hvd.DistributedOptimizer("sgd")
    wrapped = hvd.DistributedOptimizer(mx.optimizer.SGD(0.9, learning_rate=0.1), 2.0, 3)
    trainer = gluon.Trainer(net.collect_params(), wrapped, kvstore=None)
    train(net, trainer, own_parts())
    trainer.save_states(str(tmp_path / "states"))
    trainer.load_states(str(tmp_path / "states"))
    loaded = trainer.optimizer
    assert type(loaded) is hvd.DistributedOptimizer and loaded is not wrapped
    assert (loaded.momentum, loaded._average.predivide_factor, loaded._average.num_groups) == (0.9, 2.0, 3)
    train(net, trainer, own_parts())
    last = net[1].weight.data()
    assert numpy.array_equal(hvd.broadcast(last, 0).asnumpy(), last.asnumpy())


def test_trainer_unwraps_a_distributed_optimizer():
    net = net_of(0)
    inner = mx.optimizer.create(SGD[0], **SGD[1])
    with pytest.warns(UserWarning, match="unwrapped"):
        trainer = hvd.DistributedTrainer(net.collect_params(), hvd.DistributedOptimizer(inner))
    assert trainer.optimizer is inner
    train(net, trainer, own_parts())
    assert_close(weights(net), alone(*SGD))


def test_parameters_on_two_contexts_are_refused():
    net = gluon.nn.Dense(1, in_units=1)
    net.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    with pytest.raises(ValueError, match=r"one context for each rank"):
        hvd.DistributedTrainer(net.collect_params(), "sgd")


@pytest.mark.several_ranks
def test_process_set(monkeypatch):
    """The last rank trains by itself; as Horovod, the others do not reduce."""
    monkeypatch.setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1")
    first = hvd.add_process_set(list(range(hvd.size() - 1)))
    wrapped = hvd.DistributedOptimizer(mx.optimizer.SGD(learning_rate=1.0), process_set=first)
    weight, gradient = mx.nd.zeros(2), mx.nd.ones(2) * hvd.rank()
    wrapped.update(0, weight, gradient, wrapped.create_state(0, weight))
    members = range(hvd.size() - 1)
    expected = sum(members) / len(members) if first.included() else hvd.rank()
    assert weight.asnumpy().tolist() == [-expected] * 2
    with pytest.raises(ValueError, match="one of all ranks"):
        pickle.dumps(wrapped)
    net = net_of(hvd.rank())
    train(net, hvd.DistributedTrainer(net.collect_params(), *SGD, process_set=first), own_parts())
    hvd.remove_process_set(first)


def test_broadcast_parameters():
    root = hvd.size() - 1
    net = net_of(hvd.rank())
    hvd.broadcast_parameters(net.collect_params(), root_rank=root, prefix="net")
    assert_close(weights(net), weights(net_of(root)), rtol=0, atol=0)
    arrays = {"a": mx.nd.ones(2) * hvd.rank(), "b": mx.nd.ones(3) * hvd.rank()}
    hvd.broadcast_parameters(arrays, root)
    assert arrays["a"].asnumpy().tolist() == [root] * 2 and arrays["b"].asnumpy().tolist() == [root] * 3
    for wrong in (net, list(arrays.values())):
        with pytest.raises(ValueError, match="invalid params of type"):
            hvd.broadcast_parameters(wrong)


def test_parameters_are_broadcast_when_they_are_initialized():
    net = net_of(hvd.rank(), in_units=0)
    hvd.broadcast_parameters(net.collect_params())
    net(mx.nd.ones((1, FEATURES)))
    gathered = hvd.allgather_object(weights(net))
    assert_close(gathered[hvd.rank()], gathered[0], rtol=0, atol=0)
    assert any(value.any() for value in gathered[0])
    if hvd.rank() == 0:  # once only: this is no operation
        net.initialize(mx.init.One(), force_reinit=True)


@pytest.mark.several_ranks
def test_parameters_of_a_root_that_knows_them_already():
    """This is the case after rank 0 has loaded a checkpoint."""
    net = net_of(hvd.rank(), in_units=FEATURES if hvd.rank() == 0 else 0)
    hvd.broadcast_parameters(net.collect_params())
    net(mx.nd.ones((1, FEATURES)))
    assert_close(weights(net), weights(net_of(0)), rtol=0, atol=0)
