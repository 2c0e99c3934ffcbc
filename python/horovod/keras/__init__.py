"""Horovod for Keras: ``import horovod.keras as hvd``.

For the package `keras`: Keras 2.13 to 2.15, or Keras 3 on its TensorFlow, JAX or torch backend.
:mod:`horovod.tensorflow.keras` is the same for tf.keras.
"""

from typing import Any, Optional

from horovod.keras._package import keras  # first: explains what is missing

# isort: split
from horovod._keras import interface
from horovod._keras.interface import Functions, PartialDistributedOptimizer
from horovod._keras.settings import Groups, groups_of
from horovod.common import _built, _essentials
from horovod.common._built import *
from horovod.common._essentials import *
from horovod.common.compression import AnyCompressor, NoneCompressor
from horovod.common.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from horovod.keras import callbacks, elastic

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

_functions = Functions(keras)
Compression = _functions.compression
allgather = _functions.allgather
allreduce = _functions.allreduce
broadcast = _functions.broadcast
broadcast_global_variables = _functions.broadcast_global_variables
load_model = _functions.load_model
reducescatter = _functions.reducescatter


def DistributedOptimizer(
    optimizer: Any,
    name: Optional[str] = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: AnyCompressor = NoneCompressor,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
    op: int = _essentials.Average,
    num_groups: int = 0,
    groups: Groups = None,
    backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    return interface.DistributedOptimizer(
        optimizer,
        name,
        device_dense,
        device_sparse,
        compression,
        sparse_as_dense,
        gradient_predivide_factor,
        op,
        backward_passes_per_step,
        average_aggregated_gradients,
        groups=groups_of(num_groups, groups),
        process_set=process_set,
        scale_local_gradients=scale_local_gradients,
    )


# Only the order of the arguments differs.
DistributedOptimizer.__doc__ = interface.DistributedOptimizer.__doc__
