"""Horovod for JAX: ``import horovod.jax as hvd``.

Collectives take arrays, or whole pytrees of them as one group, within jax.jit and outside, and are differentiable.
Within jit they run on CPUs; outside, arrays on other devices go through host memory. A process has one device.

Arrays are of uint8, int8, int16, int32, int64, bool, float16, bfloat16, float32 or float64, and never overwritten.
Operations of one name belong together. Those without a name are counted, within jit as they stand in the program.
All raise ValueError for bad arguments (TypeError if `process_set` is not one), HorovodRequestError if the ranks' requests do
not match, and HorovodInternalError if Horovod is not initialized or the world is broken. Of a jitted program
that runs, JAX reports the last two by an exception of its own (JaxRuntimeError, or ValueError), with their
names in its text.
"""

from horovod.jax import _library  # noqa: F401  # first: says what is missing

# isort: split
from horovod.common import _essentials
from horovod.common._essentials import *
from horovod.common.exceptions import HorovodRequestError
from horovod.common.interface import (
    ProcessSet,
    add_process_set,
    global_process_set,
    is_homogeneous,
    remove_process_set,
)
from horovod.jax import _operations, elastic, optimizer
from horovod.jax._operations import *
from horovod.jax.compression import Compression
from horovod.jax.functions import broadcast_parameters
from horovod.jax.optimizer import *

__all__ = [
    *_essentials.__all__,
    *_operations.__all__,
    *optimizer.__all__,
    "Compression",
    "HorovodRequestError",
    "ProcessSet",
    "add_process_set",
    "broadcast_parameters",
    "elastic",
    "global_process_set",
    "is_homogeneous",
    "remove_process_set",
]
