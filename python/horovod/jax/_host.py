"""The implementation of :class:`horovod.common.tensors.TensorAdapter` for JAX, on numpy arrays that share the memory of JAX's
arrays, and the conversion between the two.
"""

import functools
from typing import Any, Optional

import numpy

from horovod.common.tensors import DTYPES, PARTS, TAKEN
from horovod.jax._library import jax
from horovod.numpy._arrays import address, assign, check, devices, from_memory, kind, on_host, storage

__all__ = ["address", "assign", "check", "devices", "empty_like", "from_memory", "kind", "on_host", "storage"]

_ALIGNMENT = 64  # of memory that JAX takes over; other memory it copies
# Dtypes that the runtime does not support, such as that of random keys, and the dtypes that stand for them.
_MOVED_AS = {"uint16": "int16", "uint32": "int32", "uint64": "int64"}


def empty_like(tensor: numpy.ndarray) -> tuple[numpy.ndarray, Optional[int]]:
    memory = numpy.empty(tensor.nbytes + _ALIGNMENT, numpy.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    result = memory[start : start + tensor.nbytes].view(tensor.dtype).reshape(tensor.shape)
    return result, address(result)


@functools.cache
def check_type(dtype: Any, only_moves: bool) -> None:
    """Raises ValueError if collectives don't support arrays of this dtype, traced or not. `only_moves`: the collective does not
    compute with their elements.
    """
    name = str(dtype)
    if name in DTYPES or name in PARTS or (only_moves and name in _MOVED_AS):
        return
    if jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key):
        raise ValueError(
            f"Random keys ({name}) are not supported: hvd.broadcast_parameters gives all ranks the root's, and "
            "jax.random.fold_in(key, hvd.rank()) makes one for each rank."
        )
    moved = f" Those that compute nothing take {', '.join(_MOVED_AS)}, too." if only_moves else ""
    raise ValueError(f"Arrays of type {dtype} are not supported. {TAKEN}{moved}")


def from_jax(array: Any) -> numpy.ndarray:
    """Returns the elements of a JAX array, or of a value that can be converted to one, without a copy if they are in host memory.
    They must not be overwritten. Raises ValueError for an array on several devices.
    """
    if isinstance(array, jax.Array) and len(array.devices()) > 1:
        raise ValueError(
            f"horovod.jax needs arrays on one device, this one is on {len(array.devices())}: a process of Horovod "
            "has one device."
        )
    return numpy.asarray(array, order="C")


def known_as(dtype: str) -> str:
    """Returns the name of a dtype of the same size that the runtime supports."""
    return _MOVED_AS.get(dtype, dtype)


def as_known(array: numpy.ndarray) -> numpy.ndarray:
    """Returns the array with a dtype of the same size that the runtime supports."""
    return array.view(_MOVED_AS.get(array.dtype.name, array.dtype))


def to_jax(array: numpy.ndarray, like: Any) -> Any:
    """Returns a JAX array in the place of `like`, which takes over the memory if it can."""
    device = None
    if isinstance(like, jax.Array) and like.devices() != {jax.local_devices()[0]}:
        (device,) = like.devices()
    return jax.device_put(array, device)
