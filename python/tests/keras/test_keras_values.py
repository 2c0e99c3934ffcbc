"""Collectives of values outside of models."""

import numpy
import pytest

from kerases import BACKEND, NAME, hvd, keras


def numbers(tensor):
    return numpy.asarray(tensor if NAME == "keras2" else keras.ops.convert_to_numpy(tensor))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8"])
def test_allreduce(dtype):
    value = numpy.arange(6).reshape(2, 3).astype(dtype) + hvd.rank()
    result = hvd.allreduce(value, op=hvd.Sum, name="values")
    assert not isinstance(result, numpy.ndarray) and numbers(result).dtype == dtype
    expected = sum(numpy.arange(6).reshape(2, 3) + rank for rank in range(hvd.size()))
    numpy.testing.assert_array_equal(numbers(result), expected)


def test_average_is_the_default():
    mean = (hvd.size() - 1) / 2
    assert float(hvd.allreduce(float(hvd.rank()))) == mean
    with pytest.warns(DeprecationWarning):
        assert float(hvd.allreduce(float(hvd.rank()), average=True)) == mean
    with pytest.warns(DeprecationWarning):
        assert float(hvd.allreduce(float(hvd.rank()), average=False)) == mean * hvd.size()
    scaled = hvd.allreduce(numpy.float32(1.0), prescale_factor=2.0, postscale_factor=3.0)
    assert float(scaled) == 6.0


def test_compression():
    value = numpy.float32([1.0, 1.0 + 2.0**-12])  # the second value has no exact float16
    result = hvd.allreduce(value, compression=hvd.Compression.fp16)
    assert numbers(result).dtype == "float32"
    numpy.testing.assert_array_equal(numbers(result), [1.0, 1.0])


def test_allgather():
    value = numpy.full((hvd.rank() + 1, 2), hvd.rank(), "float32")
    expected = numpy.concatenate([numpy.full((rank + 1, 2), rank) for rank in range(hvd.size())])
    numpy.testing.assert_array_equal(numbers(hvd.allgather(value)), expected)


def test_broadcast():
    root = hvd.size() - 1
    value = numpy.full((3,), hvd.rank(), "int32")
    numpy.testing.assert_array_equal(numbers(hvd.broadcast(value, root)), [root] * 3)


def test_reducescatter():
    value = numpy.arange(2 * hvd.size(), dtype="float32")
    own = value[2 * hvd.rank() : 2 * hvd.rank() + 2]
    numpy.testing.assert_array_equal(numbers(hvd.reducescatter(value)), own)
    numpy.testing.assert_array_equal(numbers(hvd.reducescatter(value, op=hvd.Sum)), own * hvd.size())


def test_tensors_and_lists():
    if NAME == "keras2":
        import tensorflow as tf

        tensor = tf.constant([1.0, 2.0])
    else:
        tensor = keras.ops.convert_to_tensor([1.0, 2.0])
    numpy.testing.assert_array_equal(numbers(hvd.allreduce(tensor)), [1.0, 2.0])
    numpy.testing.assert_array_equal(numbers(hvd.broadcast([1, 2], 0)), [1, 2])


def test_there_are_no_global_variables():
    reason = "and this is eager execution" if BACKEND == "tensorflow" else "is for graphs of TensorFlow"
    instead = r": pass hvd\.callbacks\.BroadcastGlobalVariablesCallback\(0\) to fit\(\)$"
    with pytest.raises(RuntimeError, match=reason + instead):
        hvd.broadcast_global_variables(0)
