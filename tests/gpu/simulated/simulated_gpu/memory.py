"""``torch.cuda``: the memory of devices."""

import ctypes

import torch

import simulated_gpu
from simulated_gpu.devices import index_of


def mem_get_info(device=None):
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    known = simulated_gpu.library().simulated_gpu_free_memory(index_of(device), ctypes.byref(free), ctypes.byref(total))
    if not known:
        raise RuntimeError("CUDA error: the simulated GPU can't be used")
    return free.value, total.value


def _statistics(device):
    values = (ctypes.c_size_t * 4)()
    simulated_gpu.library().simulated_gpu_statistics(index_of(device), values)
    return values


def memory_allocated(device=None):
    return _statistics(device)[0]


def max_memory_allocated(device=None):
    return _statistics(device)[1]


def memory_reserved(device=None):
    return _statistics(device)[2]


def max_memory_reserved(device=None):
    return _statistics(device)[3]


def memory_stats(device=None):
    names = ("allocated_bytes.all.current", "allocated_bytes.all.peak")
    names += ("reserved_bytes.all.current", "reserved_bytes.all.peak")
    return dict(zip(names, _statistics(device), strict=True))


def reset_peak_memory_stats(device=None):
    simulated_gpu.library().simulated_gpu_reset_peaks(index_of(device))


def empty_cache():
    simulated_gpu.library().simulated_gpu_empty_cache()


_storage_to = torch.UntypedStorage.to


def _storage_to_device(self, *, device, non_blocking=False):
    """As torch's own, which makes no storage of a CUDA device in a torch for the CPU; torch.load needs it."""
    if torch.device(device).type != "cuda":
        return _storage_to(self, device=device, non_blocking=non_blocking)
    all_bytes = torch.empty(0, dtype=torch.uint8, device=self.device).set_(self)
    return all_bytes.to(device, non_blocking=non_blocking).untyped_storage()


def install():
    torch.UntypedStorage.to = _storage_to_device
    for function in (
        empty_cache,
        max_memory_allocated,
        max_memory_reserved,
        mem_get_info,
        memory_allocated,
        memory_reserved,
        memory_stats,
        reset_peak_memory_stats,
    ):
        setattr(torch.cuda, function.__name__, function)
        setattr(torch.cuda.memory, function.__name__, function)
