"""Operations outside of jit on arrays of the simulated GPU, which this JAX does not see: a class stands in for its arrays. Counts the copies
between the device and the host."""

import ctypes
import math
import os

os.environ["NCCL_HOSTID"] = f"host-of-process-{os.getpid()}"

import jax.numpy as jnp
import numpy as np

import horovod.jax as hvd
from horovod.jax import _device_path, _kinds

hvd.init()
SIZE, RANK = hvd.size(), hvd.rank()
driver = ctypes.CDLL("libcuda.so.1")
driver.simulatedGpuBusCopies.restype = ctypes.c_longlong


def check(result):
    assert result == 0, result


class Device:
    local_hardware_id = 0


class Array:
    """Memory of the GPU, where JAX would have an array."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype, self.size = tuple(shape), jnp.dtype(dtype), math.prod(shape)
        place = ctypes.c_ulonglong()
        check(driver.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(max(1, self.size * self.dtype.itemsize))))
        self._place = place

    def unsafe_buffer_pointer(self):
        return self._place.value

    def put(self, values):
        check(
            driver.cuMemcpyHtoDAsync_v2(
                self._place, values.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(values.nbytes), stream
            )
        )
        check(driver.cuStreamSynchronize(stream))
        return self

    def get(self):
        values = np.empty(self.shape, self.dtype)
        check(
            driver.cuMemcpyDtoHAsync_v2(
                values.ctypes.data_as(ctypes.c_void_p), self._place, ctypes.c_size_t(values.nbytes), stream
            )
        )
        check(driver.cuStreamSynchronize(stream))
        return values


context, stream = ctypes.c_void_p(), ctypes.c_void_p()
check(driver.cuInit(0))
check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(driver.cuCtxPushCurrent_v2(context))
check(driver.cuStreamCreate(ctypes.byref(stream), 1))
_device_path._place_of = lambda array: Device
_device_path.empty = Array


def of_rank(rank, dtype):
    return ((np.arange(24).reshape(12, 2) + rank) % 5 + 1).astype(jnp.dtype(dtype))


for dtype in ("float32", "bfloat16", "int16", "uint16"):
    every = [of_rank(rank, dtype) for rank in range(SIZE)]
    settings = _kinds.Settings(None, hvd.global_process_set, reduction=hvd.Sum, root_rank=SIZE - 1)
    wanted = {
        _kinds.allgather: np.concatenate(every),
        _kinds.broadcast: every[-1],
        _kinds.alltoall: np.concatenate([np.split(own, SIZE)[RANK] for own in every]),
    }
    if dtype in ("float32", "bfloat16"):
        wanted[_kinds.allreduce] = sum(every)
        wanted[_kinds.reducescatter] = np.split(sum(every), SIZE)[RANK]
    for kind, own in wanted.items():
        array = Array((12, 2), dtype).put(every[RANK])
        assert kind.is_for_devices([array], settings), kind
        before = driver.simulatedGpuBusCopies()
        (found,) = kind.run([array], settings, on_device=True)
        assert driver.simulatedGpuBusCopies() == before, kind
        assert (found.get() == own).all() and found.dtype == own.dtype, (kind, dtype)
assert not _kinds.allreduce.is_for_devices([Array((1,), "int32")], settings._replace(reduction=hvd.Average))
print("no copies", flush=True)
hvd.shutdown()
