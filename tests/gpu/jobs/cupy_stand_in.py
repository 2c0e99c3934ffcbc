"""As much of CuPy, over torch, as horovod.numpy and arrays.py use: CuPy itself does not run on the simulated GPU."""

import sys
import types

import numpy as np
import torch


class Device(torch.cuda.device):
    def __init__(self, number):
        super().__init__(number)
        self.id = number

    def use(self):
        torch.cuda.set_device(self.id)


class Stream:
    def __init__(self, non_blocking=False, stream=None):
        self._stream = stream or torch.cuda.Stream()
        self.ptr = self._stream.cuda_stream

    def is_capturing(self):
        return False

    def __enter__(self):
        self._entered = torch.cuda.stream(self._stream)
        self._entered.__enter__()

    def __exit__(self, *error):
        self._entered.__exit__(*error)


def get_current_stream():
    return Stream(stream=torch.cuda.current_stream())


class ndarray:
    def __init__(self, tensor):
        self._tensor = tensor
        self.shape = tuple(tensor.shape)
        self.dtype = np.dtype(str(tensor.dtype)[len("torch.") :])

    @property
    def data(self):
        return types.SimpleNamespace(ptr=self._tensor.data_ptr())

    @property
    def flags(self):
        return types.SimpleNamespace(c_contiguous=self._tensor.is_contiguous())

    @property
    def device(self):
        return Device(self._tensor.device.index)

    @property
    def T(self):
        return ndarray(self._tensor.T)

    def __getitem__(self, rows):
        return ndarray(self._tensor[rows])

    def __setitem__(self, place, source):
        self._tensor[place] = source._tensor

    def __iadd__(self, number):
        self._tensor += number
        return self

    def __imul__(self, number):
        self._tensor *= number
        return self

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()

    def __dlpack__(self, **options):
        return self._tensor.__dlpack__(**options)

    def get(self):
        return self._tensor.cpu().numpy()


def empty(shape, dtype):
    return ndarray(torch.empty(shape, dtype=getattr(torch, np.dtype(dtype).name), device="cuda"))


def asarray(host):
    return ndarray(torch.from_numpy(host.copy()).cuda())


def ascontiguousarray(array):
    return ndarray(array._tensor.contiguous())


def install():
    """Makes `import cupy` import this module."""
    ndarray.__module__ = "cupy"
    module = sys.modules["cupy"] = sys.modules[__name__]
    available = dict(Device=Device, Stream=Stream, get_current_stream=get_current_stream, is_available=lambda: True)
    module.cuda = types.SimpleNamespace(**available)
