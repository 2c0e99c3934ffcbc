"""Libraries of arrays on the GPU for arrays.py, each with the same few functions, and a kernel that takes its time."""

import ctypes

import numpy as np
import torch

import cupy_stand_in
from gpu_rank import IS_SIMULATED, device

if IS_SIMULATED:
    cupy_stand_in.install()
try:
    import cupy
except ImportError:
    cupy = None

driver = ctypes.CDLL("libcuda.so.1")
# Not a function of Python, which would need the GIL while a call that waits for the device may hold it.
usleep = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p)


def slow_kernel(stream):
    """Puts a kernel on a stream that lasts longer than an operation that does not wait for it."""
    assert driver.cuLaunchHostFunc(ctypes.c_void_p(stream), usleep, ctypes.c_void_p(80_000)) == 0


class Torch:
    """PyTorch's own tensors."""

    def __init__(self):
        self.stream = torch.cuda.Stream()

    def on_stream(self):
        return torch.cuda.stream(self.stream)

    def slow(self):
        slow_kernel(torch.cuda.current_stream().cuda_stream)

    def make(self, host):
        return self.lend(self.tensor(host))

    def tensor(self, host):
        if host.dtype.name == "bfloat16":
            return torch.from_numpy(host.view(np.int16)).to(device).view(torch.bfloat16)
        return torch.from_numpy(host.copy()).to(device)

    def lend(self, tensor):
        return tensor

    def tensor_of(self, array):
        """The tensor whose memory is the array's."""
        return array

    def host(self, array):
        tensor = torch.from_dlpack(array)
        assert tensor.is_cuda
        return tensor.cpu().numpy()

    def is_own(self, array):
        return isinstance(array, torch.Tensor)


class _Lent:
    def __init__(self, tensor, stream):
        self.tensor, self.stream = tensor, stream


class _ByInterface(_Lent):
    """An array that has nothing but the interface, with the stream that works on it."""

    @property
    def __cuda_array_interface__(self):
        shape = tuple(self.tensor.shape)
        typestr = np.dtype(str(self.tensor.dtype)[len("torch.") :]).str
        stream = self.stream.cuda_stream or 1
        pointer = (self.tensor.data_ptr(), False)
        strides = tuple(stride * self.tensor.element_size() for stride in self.tensor.stride())
        return {"shape": shape, "typestr": typestr, "data": pointer, "strides": strides, "stream": stream, "version": 3}


class _ByDLPack(_Lent):
    """An array that has nothing but DLPack."""

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, stream=None):
        with torch.cuda.stream(self.stream):
            return self.tensor.__dlpack__(stream=stream)


class Interface(Torch):
    """A library whose arrays have __cuda_array_interface__."""

    lent = _ByInterface

    def slow(self):
        slow_kernel(self.stream.cuda_stream)

    def lend(self, tensor):
        self.stream.wait_stream(torch.cuda.current_stream())
        return self.lent(tensor, self.stream)

    def tensor_of(self, array):
        return array.tensor if isinstance(array, _Lent) else torch.from_dlpack(array)

    def host(self, array):
        return super().host(self.tensor_of(array))

    def is_own(self, array):
        return type(array).__name__ == "DeviceArray"


class DLPack(Interface):
    """A library whose arrays have __dlpack__."""

    lent = _ByDLPack


class CuPy:
    """CuPy's own arrays."""

    def __init__(self):
        self.stream = cupy.cuda.Stream(non_blocking=True)

    def on_stream(self):
        return self.stream

    def slow(self):
        slow_kernel(cupy.cuda.get_current_stream().ptr)

    def make(self, host):
        return cupy.asarray(host)

    def tensor_of(self, array):
        return array

    def host(self, array):
        return array.get()

    def is_own(self, array):
        return isinstance(array, cupy.ndarray)


def libraries():
    """By their names; CuPy where it is installed and sees the GPU."""
    found = {"torch": Torch(), "interface": Interface(), "dlpack": DLPack()}
    if cupy is not None and cupy.cuda.is_available():
        cupy.cuda.Device(device.index).use()
        found["cupy"] = CuPy()
    return found
