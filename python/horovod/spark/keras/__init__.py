"""An estimator for Spark that trains Keras models: ``import horovod.spark.keras as hvd``."""

from horovod.spark.keras.estimator import KerasEstimator, KerasModel

__all__ = ["KerasEstimator", "KerasModel"]
