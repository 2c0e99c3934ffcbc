"""SyncBatchNormalization of Keras 2 and 3. On any number of ranks."""

import numpy
import pytest
import tensorflow as tf

import horovod.tensorflow as hvd
from tf_modes import assert_same

MODES = ("eager", "function", "xla")
# Keras 2 has a kernel whose moving variance is another one.
PLAIN = {} if hasattr(tf.keras, "ops") else {"fused": False}


def batches(shape, scale=1.0, offset=0.0):
    """Returns the batches of all ranks; sizes and value ranges differ between ranks."""
    random = numpy.random.RandomState(3)
    return [
        (offset + scale * (rank + 1) * random.randn(2 + rank, *shape)).astype("float32") for rank in range(hvd.size())
    ]


def own_part(whole):
    """This rank's rows of the joined batch."""
    first = sum(2 + rank for rank in range(hvd.rank()))
    return whole[first : first + 2 + hvd.rank()]


def results(layer, inputs, mode="eager", mask=None):
    """Outputs, gradients of the inputs and of the weights, and the moving averages."""
    weights = tf.reshape(tf.range(1.0, inputs.shape[-1] + 1), (1,) * (len(inputs.shape) - 1) + (-1,))

    def step(inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = layer(inputs, training=True) if mask is None else layer(inputs, training=True, mask=mask)
            loss = tf.reduce_sum(outputs**3 * weights)
        return outputs, tape.gradient(loss, [inputs, *layer.trainable_weights])

    layer.build(inputs.shape)
    step = step if mode == "eager" else tf.function(step, jit_compile=mode == "xla")
    outputs, (grad, *of_weights) = step(tf.constant(inputs))
    moving = [numpy.asarray(layer.moving_mean), numpy.asarray(layer.moving_variance)]
    return outputs.numpy(), grad.numpy(), [each.numpy() for each in of_weights], moving


@pytest.mark.parametrize("shape, axis", [((4,), -1), ((3, 4), -1), ((4, 5), 1), ((2, 3, 4), -1), ((4, 3, 2), 1)])
@pytest.mark.parametrize("mode", MODES)
def test_equals_batch_normalization_of_the_joined_batch(mode, shape, axis):
    parts = batches(shape)
    wanted = results(tf.keras.layers.BatchNormalization(axis=axis, **PLAIN), numpy.concatenate(parts))
    found = results(hvd.SyncBatchNormalization(axis=axis), parts[hvd.rank()], mode)
    assert_same(found[0], own_part(wanted[0]), 1e-4)
    assert_same(found[1], own_part(wanted[1]), 1e-3)
    sums = [hvd.allreduce(grad, op=hvd.Sum).numpy() for grad in found[2]]
    assert_same(sums, wanted[2], 1e-3)
    assert_same(found[3], wanted[3], 1e-4)


def test_mean_that_is_large_beside_the_deviation():
    parts = batches((3,), scale=0.1, offset=1000.0)
    found = results(hvd.SyncBatchNormalization(epsilon=1e-6), parts[hvd.rank()])
    joined = numpy.concatenate(parts).astype("float64")
    wanted = (joined - joined.mean(0)) / numpy.sqrt(joined.var(0) + 1e-6)
    assert_same(found[0], own_part(wanted).astype("float32"), 1e-2)


def test_mask_leaves_values_out():
    parts = batches((3, 2))
    masks = [numpy.arange(part.shape[0] * 3).reshape(-1, 3) % 2 == 0 for part in parts]
    wanted = results(
        tf.keras.layers.BatchNormalization(**PLAIN),
        numpy.concatenate(parts),
        mask=tf.constant(numpy.concatenate(masks)),
    )
    found = results(hvd.SyncBatchNormalization(), parts[hvd.rank()], mask=tf.constant(masks[hvd.rank()]))
    assert_same(found[0], own_part(wanted[0]), 1e-4)
    assert_same(found[3], wanted[3], 1e-4)


@pytest.mark.parametrize("dtype", ["float16", "float64", "mixed_float16"])
def test_types(dtype):
    parts = batches((4,))
    layer = hvd.SyncBatchNormalization(dtype=dtype)
    outputs = layer(tf.cast(parts[hvd.rank()], dtype.split("_")[-1]), training=True)
    assert outputs.dtype == dtype.split("_")[-1]
    joined = numpy.concatenate(parts).astype("float64")
    wanted = own_part((joined - joined.mean(0)) / numpy.sqrt(joined.var(0) + 1e-3))
    assert_same(outputs.numpy().astype("float64"), wanted, 1e-2 if "16" in dtype else 1e-6)


@pytest.mark.several_ranks
def test_evaluation_communicates_nothing():
    layer = hvd.SyncBatchNormalization()
    layer.build((None, 2))
    if hvd.rank() == 0:
        assert_same(layer(tf.ones((3, 2)), training=False).numpy(), numpy.ones((3, 2), "float32"), 1e-3)
        layer.trainable = False
        layer(tf.ones((3, 2)), training=True)


def test_arguments_and_settings():
    for fused in (True, None):
        with pytest.raises(ValueError, match="does not support fused=True"):
            hvd.SyncBatchNormalization(fused=fused)
    layer = hvd.SyncBatchNormalization(momentum=0.5, center=False, name="mine")
    assert isinstance(layer, tf.keras.layers.BatchNormalization) and layer.name == "mine"
    again = hvd.SyncBatchNormalization.from_config(layer.get_config())
    assert (again.momentum, again.center, again.name) == (0.5, False, "mine")


def test_several_in_a_model_that_is_saved(tmp_path):
    inputs = tf.keras.Input((3,))
    outputs = hvd.SyncBatchNormalization()(hvd.SyncBatchNormalization()(inputs))
    model = tf.keras.Model(inputs, outputs)
    assert len({layer.name for layer in model.layers}) == 3
    path = str(tmp_path / "model.keras")
    model.save(path)
    kinds = {"SyncBatchNormalization": hvd.SyncBatchNormalization}
    loaded = tf.keras.models.load_model(path, custom_objects=kinds)
    assert isinstance(loaded.layers[-1], hvd.SyncBatchNormalization)


@pytest.mark.several_ranks
@pytest.mark.parametrize("mode", MODES)
def test_names_of_layers_do_not_matter(mode):
    """The names differ if one rank has loaded its model."""
    parts = batches((4,))
    wanted = results(tf.keras.layers.BatchNormalization(**PLAIN), numpy.concatenate(parts))
    found = results(hvd.SyncBatchNormalization(name=f"norm_{hvd.rank()}"), parts[hvd.rank()], mode)
    assert_same(found[0], own_part(wanted[0]), 1e-4)
