"""Direct use of arrays on a CUDA device by the runtime, outside of programs: the DevicePath of
:mod:`horovod.jax._device_arrays`. Results are written to arrays of JAX that nobody has seen yet.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable, Optional

from horovod import _ffi
from horovod.common import ops
from horovod.common.collective_kinds import reduces_on_devices
from horovod.common.tensors import DTYPES
from horovod.jax import _host
from horovod.jax._library import jax

_DL_CUDA = 2  # kDLCUDA of DLPack

_device: Any = None  # of JAX; the first one that the runtime takes, which is the process's only one


def _number(device: Any) -> int:
    """Returns the number that the CUDA driver has for a device."""
    return int(device.local_hardware_id)


def _place_of(array: Any) -> Any:
    """Returns the GPU whose memory an array is in; None if it is anywhere else."""
    if not isinstance(array, jax.Array) or len(array.devices()) != 1:
        return None
    (device,) = array.devices()
    kind = getattr(array.sharding, "memory_kind", None)  # JAX has arrays of a GPU in page-locked host memory, too
    return device if device.platform in ("gpu", "cuda") and kind in (None, "device") else None


def takes(tensors: Sequence[Any], fields: Mapping[str, Any]) -> bool:
    """Returns whether the runtime can use these arrays directly, to be reduced if `fields` say how. The answer is the same on all
    ranks whose arrays are alike.
    """
    global _device
    places = {_place_of(tensor) for tensor in tensors}
    if len(places) != 1 or None in places:
        return False
    if "reduction" in fields:
        are_floats = all(jax.numpy.issubdtype(tensor.dtype, jax.numpy.floating) for tensor in tensors)
        if not reduces_on_devices(are_floats, **fields):
            return False
    (place,) = places
    if not _ffi.takes_device(_number(place)):
        return False
    _device = place
    return True


def stretches(tensors: Sequence[Any], in_one_piece: Callable[[Any], Any]) -> Optional[Iterator[Any]]:
    return None


def load(pairs: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    return list(pairs)  # states have JAX's arrays in host memory


def _zeros(shape: tuple[int, ...], dtype: Any) -> Any:
    return jax.numpy.zeros(shape, dtype)


_compiled_zeros = jax.jit(_zeros, static_argnums=(0, 1))


def empty(shape: Sequence[int], dtype: Any) -> Any:
    """Returns an array on the device, to be overwritten once it is ready. It is made by a program, since the memory may be in use by
    work on JAX's stream that comes before.
    """
    with jax.default_device(_device):
        made = _compiled_zeros(tuple(shape), dtype)
    # As device_put of an array in host memory: committed to a device other than the default one.
    return made if _device == jax.local_devices()[0] else jax.device_put(made, _device)


def room(tensor: Any, rows: int) -> Any:
    return empty((rows, *tensor.shape[1:]), tensor.dtype)


def start(
    op: int,
    tensors: Sequence[Any],
    outputs: Sequence[Any],
    names: Sequence[str],
    finish: Callable[[int], Any],
    process_set: int,
    each: Sequence[Mapping[str, Any]],
) -> int:
    """Submits `tensors` and waits. A result goes to its output, or to memory of the runtime if that is None or has another size.
    After synchronize, which returns `finish(handle)`, every program can use the result.
    """
    jax.block_until_ready([tensors, [output for output in outputs if output is not None]])
    requests = [
        _ffi.request(
            name,
            op,
            DTYPES[_host.known_as(tensor.dtype.name)],
            input_address=_address(tensor),
            output_address=0 if output is None else _address(output),
            device=_number(_device),
            **{"shape": tensor.shape, **fields},
        )
        for name, tensor, output, fields in zip(names, tensors, outputs, each)
    ]
    return ops.submit(requests, finish, (tensors, outputs), process_set, waits=True)


def _address(array: Any) -> int:
    return int(array.unsafe_buffer_pointer()) if array.size > 0 else 0


class _Memory:
    """Bytes of the runtime on the device, for DLPack."""

    def __init__(self, address: int, size: int) -> None:
        self._place = address, size

    def __dlpack_device__(self) -> tuple[int, int]:
        return _DL_CUDA, _number(_device)

    def __dlpack__(self, **_: Any) -> Any:
        return _ffi.as_dlpack(*self._place, _number(_device))


def _typed(memory: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    if dtype == jax.numpy.bool_:
        return memory.astype(dtype).reshape(shape)
    size = jax.numpy.dtype(dtype).itemsize
    parts = memory.reshape(shape if size == 1 else (*shape, size))
    return jax.numpy.copy(parts) if dtype == memory.dtype else jax.lax.bitcast_convert_type(parts, dtype)


_compiled_typed = jax.jit(_typed, static_argnums=(1, 2))


def from_result(result: _ffi.Result, like: Any, output: Any) -> Any:
    """Returns the result of :func:`start` as an array of `like`'s dtype: `output`, if the result is there. After that its handle may
    be released.
    """
    count = math.prod(result.shape)
    if count == 0:
        return empty(result.shape, like.dtype)
    if output is not None and _address(output) == result.address:
        return output
    memory = jax.dlpack.from_dlpack(_Memory(result.address, count * like.dtype.itemsize))
    return jax.block_until_ready(_compiled_typed(memory, result.shape, like.dtype))
