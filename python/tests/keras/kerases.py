"""The Keras that the tests run with, which the environment says as it does for users: KERAS_BACKEND for Keras
3, TF_USE_LEGACY_KERAS=1 for tf-keras, and else the TensorFlow that is installed."""

import functools
import os

import numpy

BACKEND = os.environ.get("KERAS_BACKEND", "tensorflow")


def _import():
    """Keras, horovod for it, and whether it is "keras2" or "keras3"."""
    if BACKEND == "tensorflow":
        import tensorflow as tf

        if os.environ.get("TF_USE_LEGACY_KERAS") == "1" or tf.__version__.startswith(("2.13", "2.14", "2.15")):
            import horovod.tensorflow.keras as hvd

            return tf.keras, hvd, "keras2"
    import keras

    import horovod.keras as hvd

    return keras, hvd, "keras3"


keras, hvd, NAME = _import()

# Of optimizers; their classes are found in `optimizers(kind)`.
KINDS = ["new", "legacy"] if NAME == "keras2" else ["new"]

# What tests that are about something else give to compile(). Without it, JAX runs one operation after another, each
# compiled by itself.
JIT = BACKEND == "jax"

FEATURES = 4
BATCH = 8  # of a rank
CLOSE = dict(rtol=1e-5, atol=1e-5)


def optimizers(kind):
    return keras.optimizers.legacy if kind == "legacy" else keras.optimizers


def sgd(kind="new", rate=0.05, momentum=0.9, **options):
    return optimizers(kind).SGD(rate, momentum=momentum, **options)


def set_policy(name):
    (keras.mixed_precision.set_global_policy if NAME == "keras2" else keras.config.set_dtype_policy)(name)


def model_of(seed=1, units=8):
    keras.utils.set_random_seed(seed)
    model = keras.Sequential(
        [
            keras.layers.InputLayer((FEATURES,)),
            keras.layers.Dense(units, activation="tanh", name="hidden"),
            keras.layers.Dense(1, dtype="float32", name="out"),
        ]
    )
    return model


def batches(steps=8):
    """The joined batches of all ranks, and this rank's parts of them: pairs of inputs and targets."""
    random = numpy.random.RandomState(0)
    inputs = random.randn(steps, hvd.size(), BATCH, FEATURES).astype("float32")
    targets = inputs.sum(axis=-1, keepdims=True) ** 2 / 4

    def flat(array):
        return array.reshape(-1, array.shape[-1])

    rank = hvd.rank()
    return (flat(inputs), flat(targets)), (flat(inputs[:, rank]), flat(targets[:, rank]))


def fit(model, data, batch_size, epochs=2, **arguments):
    inputs, targets = data
    arguments = dict(batch_size=batch_size, epochs=epochs, verbose=0, shuffle=False, **arguments)
    return model.fit(inputs, targets, **arguments)


def fit_together(optimizer, jit=JIT):
    """The model after training with this rank's parts of the batches."""
    model = model_of()
    model.compile(optimizer, "mse", jit_compile=jit)
    fit(model, batches()[1], BATCH)
    return model


@functools.cache
def weights_alone(kind="new", jit=JIT, joined=1, name="SGD", **options):
    """Returns the weights that one process gets with the joined batches, `joined` of them as one batch."""
    model = model_of()
    optimizer = sgd(kind, **options) if name == "SGD" else getattr(optimizers(kind), name)(**options)
    model.compile(optimizer, "mse", jit_compile=jit)
    fit(model, batches()[0], BATCH * hvd.size() * joined)
    return model.get_weights()


def assert_weights(model, expected, **tolerance):
    for own, wanted in zip(model.get_weights(), expected):
        numpy.testing.assert_allclose(own, wanted, **(tolerance or CLOSE))


def assert_alike_on_all_ranks(arrays):
    """Bit by bit."""
    for array in arrays:
        array = numpy.asarray(array)
        gathered = numpy.asarray(hvd.allgather(array.reshape(1, -1)))
        assert all(numpy.array_equal(row, gathered[0], equal_nan=True) for row in gathered)


def variables_of(optimizer):
    variables = optimizer.variables
    variables = variables() if callable(variables) else variables
    return [numpy.asarray(value_of(variable)) for variable in variables]


def value_of(variable):
    return variable.numpy() if NAME == "keras2" else keras.ops.convert_to_numpy(variable)
