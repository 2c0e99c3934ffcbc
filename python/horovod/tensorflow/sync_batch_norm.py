"""Batch normalization with the statistics of all ranks' batches."""

import inspect
from typing import Any, Optional

from horovod.common.basics import size
from horovod.common.ops import Sum
from horovod.common.util import is_elastic
from horovod.tensorflow._library import tf
from horovod.tensorflow.mpi_ops import _allreduce
from horovod.tensorflow.util import unique_name

_BatchNormalization: Any = tf.keras.layers.BatchNormalization
_MOMENTS = inspect.signature(_BatchNormalization._moments)
_IS_KERAS_2 = "reduction_axes" in _MOMENTS.parameters  # Keras 3 has the axes in an attribute


class SyncBatchNormalization(_BatchNormalization):  # type: ignore[misc]  # Keras is Any here
    """Batch normalization over the combined batch of all ranks, for training with small batches on each rank.

    In training, mean and variance are those of all ranks' inputs; the ranks' batches may differ in size. Evaluation
    communicates nothing. The statistics of half-precision inputs are computed in float32. The layer belongs to tf.keras,
    Keras 2 or 3.

    Args:
      fused: must be False: there is no fused kernel for it.
      kwargs: as for tf.keras.layers.BatchNormalization.

    Raises:
      ValueError: `fused` is True or None.
    """

    def __init__(self, fused: Optional[bool] = False, **kwargs: Any) -> None:
        if fused in (True, None):
            raise ValueError("SyncBatchNormalization does not support fused=True.")
        if _IS_KERAS_2:
            kwargs["fused"] = False
        super().__init__(**kwargs)

    def _moments(self, inputs: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        given = _MOMENTS.bind(self, inputs, *args, **kwargs).arguments
        axes = given["reduction_axes"] if _IS_KERAS_2 else self._reduction_axes
        mean, variance = _moments_of_all(inputs, axes, given.get("mask"))
        if given.get("keep_dims", False):
            return mean, variance
        return tf.squeeze(mean, axes), tf.squeeze(variance, axes)


def _moments_of_all(inputs: Any, axes: Any, mask: Any) -> tuple[Any, Any]:
    """Mean and variance of all ranks' inputs, along `axes`, whose dimensions are kept. `mask` leaves
    out what is False, it has all dimensions but the last."""
    values = tf.cast(inputs, tf.float64 if inputs.dtype == tf.float64 else tf.float32)
    counted = tf.ones_like(values)
    if mask is not None:
        counted *= tf.cast(tf.expand_dims(mask, -1), values.dtype)
    count, total = _sums([counted, values * counted], axes)
    mean = total / count
    # Sums of deviations, not of squares: accurate even if the mean is much larger than the deviations.
    (deviation,) = _sums([tf.square(values - mean) * counted], axes)
    return tf.cast(mean, inputs.dtype), tf.cast(deviation / count, inputs.dtype)


def _sums(values: list[Any], axes: Any) -> Any:
    """Returns the sums along `axes` over all ranks."""
    own = [tf.reduce_sum(value, axes, keepdims=True) for value in values]
    if size() == 1 and not is_elastic():
        return own
    # Not after the layer: a rank that has loaded its model may have other names for its layers.
    name = "SyncBatchNormalization"
    name = name if tf.executing_eagerly() else unique_name(name)
    return tf.unstack(_allreduce(tf.stack(own), name=name, op=Sum, ignore_name_scope=True), len(values))
