"""Test helpers: the ways in which TensorFlow runs a function of tensors, and values that every rank knows
of all ranks."""

import contextlib

import numpy
import tensorflow as tf

import horovod.tensorflow as hvd

MODES = ("eager", "function", "session", "xla")
NOT_COMPILED = MODES[:3]  # for operations that XLA can't have
DIMS = [(4,), (3, 2), (2, 3, 2)]
REDUCED = ["uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


def values(results):
    """The results of eager execution as arrays."""
    return tf.nest.map_structure(lambda each: each if each is None else each.numpy(), results)


def in_session(function, *arrays):
    """Returns the results of `function` for placeholders of `arrays`, as arrays, in a new graph."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        placeholders = [tf.compat.v1.placeholder(array.dtype, array.shape) for array in arrays]
        results = function(*placeholders)
        session.run([tf.compat.v1.global_variables_initializer(), tf.compat.v1.local_variables_initializer()])
        return session.run(results, dict(zip(placeholders, arrays)))


def run(mode, function, *arrays):
    """Returns the results of `function` for tensors with the values of `arrays`, as arrays."""
    if mode == "session":
        return in_session(function, *arrays)
    if mode != "eager":
        function = tf.function(function, jit_compile=mode == "xla")
    return values(function(*[tf.constant(array) for array in arrays]))


def of_rank(rank, shape, dtype="float32"):
    """Small whole numbers, so that reductions of all types are exact."""
    dtype = tf.as_dtype(dtype).as_numpy_dtype
    return (numpy.arange(numpy.prod(shape)).reshape(shape) % 3 + (rank + 1) % 4).astype(dtype)


def mine(shape, dtype="float32"):
    return of_rank(hvd.rank(), shape, dtype)


def of_all(shape, dtype="float32"):
    """[ranks, ...], of a type that holds all sums."""
    wide = "float64" if tf.as_dtype(dtype).is_floating else "int64"
    return numpy.stack([of_rank(rank, shape, dtype).astype(wide) for rank in range(hvd.size())])


REDUCTIONS = {
    "Sum": lambda stacked: stacked.sum(0),
    "Average": lambda stacked: stacked.sum(0) / len(stacked),
    "Min": lambda stacked: stacked.min(0),
    "Max": lambda stacked: stacked.max(0),
    "Product": lambda stacked: stacked.prod(0),
}


def reduced(op, shape, dtype="float32", ranks=None):
    """The reduction of those ranks' values, of all by default, in `dtype`: averages of integers are rounded
    towards zero."""
    stacked = of_all(shape, dtype)
    result = REDUCTIONS[op](stacked if ranks is None else stacked[ranks])
    return (result if tf.as_dtype(dtype).is_floating else numpy.trunc(result)).astype(tf.as_dtype(dtype).as_numpy_dtype)


def assert_same(found, expected, tolerance=0.0):
    """Equal arrays, or nests of them: types, shapes, and values but for a relative error."""
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            assert_same(one, other, tolerance)
        return
    expected = numpy.asarray(expected)
    found = numpy.asarray(found)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    wide = "complex128" if expected.dtype.kind == "c" else "float64"
    close = numpy.allclose(found.astype(wide), expected.astype(wide), rtol=tolerance, atol=tolerance)
    assert close, (found, expected)


@contextlib.contextmanager
def added(ranks):
    """A process set, while the context lasts; None for no ranks."""
    process_set = hvd.add_process_set(ranks) if ranks else None
    yield process_set
    if process_set is not None:
        assert hvd.remove_process_set(process_set)


@contextlib.contextmanager
def own_set():
    """The process set of this rank, of those with even and odd ranks; alone that of all."""
    if hvd.size() == 1:
        yield hvd.global_process_set
        return
    parts = [list(range(first, hvd.size(), 2)) for first in (0, 1)]
    with added(parts[0]) as evens, added(parts[1]) as odds:
        yield odds if hvd.rank() % 2 else evens
