"""Horovod for TensorFlow: ``import horovod.tensorflow as hvd``."""

import importlib
from typing import Any

from horovod.tensorflow import _library  # noqa: F401  # first: says what is missing

# isort: split
from horovod.common import _built, _essentials
from horovod.common._built import *
from horovod.common._essentials import *
from horovod.common.basics import is_homogeneous
from horovod.common.process_sets import (
    ProcessSet,
    add_process_set,
    barrier,
    global_process_set,
    remove_process_set,
)
from horovod.common.util import gpu_available
from horovod.common.util import num_rank_is_power_2 as check_num_rank_power_of_2
from horovod.common.util import split_list as split_list
from horovod.tensorflow import (
    _gradients,  # noqa: F401  # registers them
    compression,
    functions,
    mpi_ops,
    reductions,
    util,
)
from horovod.tensorflow._queries import local_rank_op, local_size_op, process_set_included_op, rank_op, size_op
from horovod.tensorflow.compression import Compression
from horovod.tensorflow.functions import *
from horovod.tensorflow.gradient_aggregation import LocalGradientAggregationHelper
from horovod.tensorflow.gradient_tape import DistributedGradientTape, PartialDistributedGradientTape
from horovod.tensorflow.hooks import BroadcastGlobalVariablesHook
from horovod.tensorflow.mpi_ops import _allreduce as _allreduce
from horovod.tensorflow.mpi_ops import _grouped_allreduce as _grouped_allreduce
from horovod.tensorflow.mpi_ops import _grouped_reducescatter as _grouped_reducescatter
from horovod.tensorflow.mpi_ops import _reducescatter as _reducescatter
from horovod.tensorflow.mpi_ops import allgather, alltoall, broadcast, broadcast_, grouped_allgather, join
from horovod.tensorflow.optimizer import DistributedOptimizer
from horovod.tensorflow.reductions import *
from horovod.tensorflow.util import _executing_eagerly as _executing_eagerly

__all__ = [
    *_built.__all__,
    *_essentials.__all__,
    *functions.__all__,
    *reductions.__all__,
    "BroadcastGlobalVariablesHook",
    "Compression",
    "DistributedGradientTape",
    "DistributedOptimizer",
    "LocalGradientAggregationHelper",
    "PartialDistributedGradientTape",
    "ProcessSet",
    "SyncBatchNormalization",  # noqa: F405 - see __getattr__
    "add_process_set",
    "allgather",
    "alltoall",
    "barrier",
    "broadcast",
    "broadcast_",
    "check_num_rank_power_of_2",
    "compression",
    "elastic",  # noqa: F405
    "functions",
    "global_process_set",
    "gpu_available",
    "grouped_allgather",
    "is_homogeneous",
    "join",
    "local_rank_op",
    "local_size_op",
    "mpi_ops",
    "process_set_included_op",
    "rank_op",
    "remove_process_set",
    "size_op",
    "util",
]


def __getattr__(name: str) -> Any:
    # Not before it is asked for: Keras's import takes seconds, and a job that is not elastic need not
    # pay for that.
    if name == "elastic":
        return importlib.import_module("horovod.tensorflow.elastic")
    if name == "SyncBatchNormalization":
        return importlib.import_module("horovod.tensorflow.sync_batch_norm").SyncBatchNormalization
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
