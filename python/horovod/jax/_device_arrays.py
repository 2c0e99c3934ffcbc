"""The implementation of :class:`horovod.common.tensors.TensorAdapter` for JAX's arrays on a CUDA device, as far as operations on the
device need it.
"""

from typing import Any, Optional

import numpy

from horovod.common.tensors import DevicePath, Kind
from horovod.jax import _device_path
from horovod.jax._library import jax

Array = Any  # of JAX

devices: DevicePath[Array] = _device_path


def check(tensor: Array) -> None:
    return None  # not in host memory; the primitive has checked the type


def kind(value: Any, exact: bool = False) -> Optional[Kind]:
    return (tuple(value.shape), value.dtype.name) if hasattr(value, "dtype") else None


def address(tensor: Array) -> None:
    return None


storage = address  # no array of JAX is overwritten


def on_host(value: Any) -> Any:
    return value


def empty_like(tensor: Array) -> tuple[Array, None]:
    return _device_path.empty(tensor.shape, tensor.dtype), None


def from_memory(memory: Any, offset: int, kind: Kind, like: Array = None) -> numpy.ndarray:
    """Returns an array in host memory: the primitive moves what it gives to the script."""
    shape, name = kind
    return numpy.frombuffer(memory, jax.numpy.dtype(name), offset=offset).reshape(shape)


def assign(target: Array, source: Array) -> None:
    raise NotImplementedError("arrays of JAX are not overwritten")
