"""Horovod for tf.keras: ``import horovod.tensorflow.keras as hvd``.

That is Keras 2 (of TensorFlow 2.13 to 2.15, or tf-keras with TF_USE_LEGACY_KERAS=1) or Keras 3 (of TensorFlow
2.16 and later). :mod:`horovod.keras` is the same for the package `keras`.
"""

from horovod._keras.interface import DistributedOptimizer, Functions, PartialDistributedOptimizer
from horovod.common import _built, _essentials
from horovod.common._built import *
from horovod.common._essentials import *
from horovod.common.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from horovod.tensorflow._library import tf
from horovod.tensorflow.keras import callbacks, elastic

__all__ = [
    *_built.__all__,
    *_essentials.__all__,
    "Compression",
    "DistributedOptimizer",
    "PartialDistributedOptimizer",
    "ProcessSet",
    "add_process_set",
    "allgather",
    "allreduce",
    "broadcast",
    "broadcast_global_variables",
    "callbacks",
    "elastic",
    "global_process_set",
    "load_model",
    "reducescatter",
    "remove_process_set",
]

_functions = Functions(tf.keras)
Compression = _functions.compression
allgather = _functions.allgather
allreduce = _functions.allreduce
broadcast = _functions.broadcast
broadcast_global_variables = _functions.broadcast_global_variables
load_model = _functions.load_model
reducescatter = _functions.reducescatter
