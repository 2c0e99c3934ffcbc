"""Stands in for Intel's package: makes torch's device type xpu the one that tests/xpu/simulated_xpu.cc simulates, and
``torch.xpu`` say so. HOROVOD_TEST_XPU names the compiled library."""

import ctypes
import os
import types

import torch

_PATH = os.environ["HOROVOD_TEST_XPU"]
torch.ops.load_library(_PATH)
_library = ctypes.CDLL(_PATH)


def _lazy_init():
    pass


def is_available():
    return True


def device_count():
    return _library.xpu_device_count()


def current_device():
    return _library.xpu_current_device()


def set_device(device):
    _library.xpu_set_device(device if isinstance(device, int) else torch.device(device).index)


def _exchange_device(device):
    before = current_device()
    if device >= 0:
        set_device(device)
    return before


def synchronize(device=None):
    _library.xpu_synchronize(current_device() if device is None else torch.device(device).index)


def get_device_properties(device=None):
    return types.SimpleNamespace(name="simulated", has_fp64=True)


for _function in (
    _exchange_device,
    _lazy_init,
    current_device,
    device_count,
    get_device_properties,
    is_available,
    set_device,
    synchronize,
):
    setattr(torch.xpu, _function.__name__, _function)
torch.xpu._maybe_exchange_device = _exchange_device


def pending(device=None):
    """How many kernels and copies are queued and not started."""
    return _library.xpu_pending(current_device() if device is None else torch.device(device).index)
