"""The global policy mixed_bfloat16: weights and gradients are float32, layers compute in bfloat16."""

import numpy
import pytest

from kerases import (
    BATCH,
    JIT,
    KINDS,
    assert_alike_on_all_ranks,
    assert_weights,
    batches,
    fit,
    hvd,
    model_of,
    sgd,
    variables_of,
)

pytestmark = pytest.mark.usefixtures("bfloat16")


def trained(optimizer, data, batch_size, **arguments):
    model = model_of()
    model.compile(optimizer, "mse", jit_compile=JIT)
    fit(model, data, batch_size, **arguments)
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_ranks_train_as_one_process(kind):
    model = trained(hvd.DistributedOptimizer(sgd(kind)), batches()[1], BATCH)
    assert model.layers[0].compute_dtype == "bfloat16" and "LossScale" not in type(model.optimizer).__name__
    assert {weight.dtype.name for weight in model.get_weights()} == {"float32"}
    alone = trained(sgd(kind), batches()[0], BATCH * hvd.size())
    assert_weights(model, alone.get_weights(), rtol=2e-2, atol=1e-2)
    assert_alike_on_all_ranks([*model.get_weights(), *variables_of(model.optimizer)])


def test_weights_of_the_root_are_broadcast():
    model = model_of(seed=hvd.rank())
    expected = model_of(seed=0).get_weights()
    model.compile(hvd.DistributedOptimizer(sgd(rate=0.0)), "mse", jit_compile=JIT)
    fit(model, batches()[1], BATCH, epochs=1, callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
    for own, of_root in zip(model.get_weights(), expected):
        numpy.testing.assert_array_equal(own, of_root)


@pytest.mark.several_ranks
def test_without_a_reduction_ranks_would_differ():
    """Checks that the tests above can fail."""
    model = trained(sgd(), batches()[1], BATCH)
    weights = model.get_weights()[0].reshape(1, -1)
    gathered = numpy.asarray(hvd.allgather(weights))
    assert not numpy.array_equal(gathered[0], gathered[1])
