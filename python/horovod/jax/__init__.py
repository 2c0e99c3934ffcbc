"""Horovod for JAX: ``import horovod.jax as hvd``.

Collectives take arrays, or whole pytrees of them as one group, inside and outside of jax.jit, and are differentiable.
A process has one device, a CPU or an NVIDIA GPU. Arrays on other devices are copied to host memory; inside jit they are refused.

Arrays are of uint8, int8, int16, int32, int64, bool, float16, bfloat16, float32, float64, complex64 or complex128, and are
never overwritten. Complex ones are reduced by hvd.Sum and hvd.Average only. Operations of the same name belong together.
Operations without a name are counted, inside jit in the order of the program.

Raises (all collectives):
  ValueError: an argument is invalid.
  TypeError: `process_set` is not a registered process set.
  HorovodRequestError: the ranks' requests do not match; the world stays usable.
  HorovodInternalError: Horovod is not initialized, or the world is broken.

For a jitted program that is running, JAX reports the last two by its own exceptions (JaxRuntimeError or ValueError),
with their names in the text.
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
