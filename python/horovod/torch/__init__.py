"""Horovod for PyTorch: ``import horovod.torch as hvd``."""

import importlib
import types

from horovod.torch import _package  # noqa: F401  # first: says what is missing

# isort: split
from horovod.common import _built, _essentials
from horovod.common._built import *
from horovod.common._essentials import *
from horovod.common.process_sets import (
    ProcessSet,
    add_process_set,
    global_process_set,
    remove_process_set,
)
from horovod.torch import (
    _allgather,
    _allreduce,
    _alltoall,
    _broadcast,
    _reducescatter,
    compression,
    functions,
    mpi_ops,
    optimizer,
    sync_batch_norm,
)
from horovod.torch._allgather import *
from horovod.torch._allreduce import *
from horovod.torch._alltoall import *
from horovod.torch._broadcast import *
from horovod.torch._reducescatter import *
from horovod.torch._sparse import sparse_allreduce_async
from horovod.torch.compression import Compression
from horovod.torch.distributed_env import torch_distributed_env
from horovod.torch.functions import (
    allgather_object,
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
)
from horovod.torch.mpi_ops import barrier, join, poll, synchronize
from horovod.torch.optimizer import DistributedOptimizer
from horovod.torch.sync_batch_norm import SyncBatchNorm

__all__ = [
    *_built.__all__,
    *_essentials.__all__,
    *_allgather.__all__,
    *_allreduce.__all__,
    *_alltoall.__all__,
    *_broadcast.__all__,
    *_reducescatter.__all__,
    "Compression",
    "DistributedOptimizer",
    "ProcessSet",
    "SyncBatchNorm",
    "add_process_set",
    "allgather_object",
    "barrier",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "compression",
    "elastic",  # noqa: F405 - see __getattr__
    "functions",
    "global_process_set",
    "join",
    "mpi_ops",
    "optimizer",
    "poll",
    "remove_process_set",
    "sparse_allreduce_async",
    "sync_batch_norm",
    "synchronize",
    "torch_distributed_env",
]

_check_has_gpu = _built.cuda_built


def __getattr__(name: str) -> types.ModuleType:
    # Imported at first use: a job that is not elastic does not need it.
    if name == "elastic":
        return importlib.import_module("horovod.torch.elastic")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
