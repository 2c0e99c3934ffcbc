"""mixed_float16 with an overflow on one rank: all ranks skip the same steps, as one process would with the
joined batches."""

import functools

import numpy
import pytest

from kerases import (
    BATCH,
    FEATURES,
    JIT,
    KINDS,
    NAME,
    assert_alike_on_all_ranks,
    fit,
    hvd,
    keras,
    model_of,
    sgd,
    value_of,
)

STEPS = 6
pytestmark = pytest.mark.usefixtures("float16")


def data(joined):
    """Returns batches; the second one overflows, on the last rank only."""
    random = numpy.random.RandomState(0)
    inputs = random.randn(STEPS, hvd.size(), BATCH, FEATURES).astype("float32")
    targets = inputs.sum(axis=-1, keepdims=True) / 10
    targets[1, -1] = 1e30
    if not joined:
        inputs, targets = inputs[:, hvd.rank()], targets[:, hvd.rank()]
    return inputs.reshape(-1, FEATURES), targets.reshape(-1, 1)


def scaling_of(model):
    """The LossScaleOptimizer, its scale, and the steps of the optimizer in it."""
    scaling = model.optimizer
    scale = scaling.loss_scale if NAME == "keras2" else scaling.dynamic_scale
    inner = scaling.inner_optimizer
    return scaling, float(value_of(scale)), int(value_of(inner.iterations if NAME == "keras2" else inner._iterations))


class Scales(keras.callbacks.Callback):
    """The scale after each batch."""

    def on_train_begin(self, logs=None):
        self.seen = []

    def on_train_batch_end(self, batch, logs=None):
        if hasattr(self.model, "jax_state_sync"):
            self.model.jax_state_sync()
        self.seen.append(scaling_of(self.model)[1])

    on_batch_end = on_train_batch_end  # not in a separate thread


def trained(optimizer, joined=False):
    model = model_of()
    model.compile(optimizer, "mse", jit_compile=JIT)
    scales = Scales()
    fit(model, data(joined), BATCH * (hvd.size() if joined else 1), epochs=1, callbacks=[scales])
    return model, scales.seen


@functools.cache
def trained_alone(kind):
    """The scales, the number of steps and the weights of one process with the joined batches."""
    model, scales = trained(sgd(kind), joined=True)
    return scales, scaling_of(model)[2], model.get_weights()


def wrapped(optimizer):
    mixed = keras.mixed_precision if NAME == "keras2" else keras.optimizers
    return mixed.LossScaleOptimizer(optimizer)


WAYS = {
    "compile() scales": lambda optimizer, **how: hvd.DistributedOptimizer(optimizer, **how),
    "around a LossScaleOptimizer": lambda optimizer, **how: hvd.DistributedOptimizer(wrapped(optimizer), **how),
    "within a LossScaleOptimizer": lambda optimizer, **how: wrapped(hvd.DistributedOptimizer(optimizer, **how)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_all_ranks_skip_the_step_that_overflows_on_one(kind, way):
    model, scales = trained(WAYS[way](sgd(kind)))
    expected, steps, weights = trained_alone(kind)
    assert scales == expected and len(set(scales)) == 2  # it was halved once
    assert scaling_of(model)[2] == steps
    for own, other in zip(model.get_weights(), weights):
        numpy.testing.assert_allclose(own, other, rtol=1e-2, atol=1e-3)
    assert_alike_on_all_ranks([*model.get_weights(), scales])


@pytest.mark.parametrize("kind", KINDS)
def test_with_accumulation(kind):
    optimizer = hvd.DistributedOptimizer(sgd(kind), backward_passes_per_step=2, average_aggregated_gradients=True)
    model, scales = trained(optimizer)
    assert scales[0] == 2 * scales[-1]
    assert numpy.isfinite(model.get_weights()[0]).all()
    assert_alike_on_all_ranks([*model.get_weights(), scales])


@pytest.mark.parametrize("kind", KINDS)
def test_with_a_local_variable(kind):
    """The variable's gradient overflows on one rank, and is not reduced."""
    model = model_of()
    optimizer = hvd.DistributedOptimizer(sgd(kind))
    for variable in model.trainable_variables:
        optimizer.register_local_var(variable)
    model.compile(optimizer, "mse", jit_compile=JIT)
    scales = Scales()
    fit(model, data(joined=False), BATCH, epochs=1, callbacks=[scales])
    assert scales.seen[0] == 2 * scales.seen[-1]
    assert numpy.isfinite(model.get_weights()[0]).all()
    assert_alike_on_all_ranks([scales.seen])


def test_the_default_of_compile_is_what_the_first_test_uses():
    model = model_of()
    model.compile(hvd.DistributedOptimizer(sgd()), "mse")
    assert "LossScaleOptimizer" in type(model.optimizer).__name__
