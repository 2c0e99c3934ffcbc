"""The implementation of :class:`horovod.common.tensors.TensorAdapter` for JAX's arrays on a CUDA device, as far as operations on the
device need it.
"""

from typing import Any, Optional

import numpy

from horovod.common.tensors import DevicePath, Kind
from horovod.jax import _device_path
from horovod.jax._library import jax

devices: DevicePath[Any] = _device_path


def check(tensor: Any) -> None:
    return None  # not in host memory; the primitive has checked the type


def kind(value: Any, exact: bool = False) -> Optional[Kind]:
    return (tuple(value.shape), value.dtype.name) if hasattr(value, "dtype") else None


def address(tensor: Any) -> None:
    return None


storage = address  # no array of JAX is overwritten


def on_host(value: Any) -> Any:
    return value


def empty_like(tensor: Any) -> tuple[Any, None]:
    return _device_path.empty(tensor.shape, tensor.dtype), None


def from_memory(memory: Any, offset: int, kind: Kind, like: Any = None) -> numpy.ndarray:
    """Returns an array in host memory: the primitive moves what it gives to the script."""
    shape, name = kind
    return numpy.frombuffer(memory, jax.numpy.dtype(name), offset=offset).reshape(shape)


def assign(target: Any, source: Any) -> None:
    raise NotImplementedError("arrays of JAX are not overwritten")
