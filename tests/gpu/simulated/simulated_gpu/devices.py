"""``torch.cuda``: which devices there are, and the current one."""

import types

import torch

import simulated_gpu

NAME = "Simulated GPU"


def index_of(device=None):
    """The index of a device that is given in any of torch's ways; None is the current one."""
    if device is None:
        return current_device()
    if isinstance(device, int):
        return current_device() if device < 0 else device
    index = torch.device(device).index
    return current_device() if index is None else index


def device_count():
    return simulated_gpu.library().simulated_gpu_count()


def is_available():
    return device_count() > 0


def current_device():
    return torch._C._accelerator_getDeviceIndex()


def set_device(device):
    index = index_of(device)
    if index >= device_count():
        raise torch.AcceleratorError("CUDA error: invalid device ordinal")
    torch._C._accelerator_setDeviceIndex(index)


def _exchange_device(device):
    before = current_device()
    if device >= 0:
        set_device(device)
    return before


def _maybe_exchange_device(device):
    """Another function than the one above: torch.compile tells them apart."""
    return _exchange_device(device)


def synchronize(device=None):
    torch._C._accelerator_synchronizeDevice(index_of(device))


def get_device_properties(device=None):
    total = torch.cuda.mem_get_info(device)[1]
    return types.SimpleNamespace(
        name=NAME,
        major=9,
        minor=0,
        total_memory=total,
        multi_processor_count=1,
        warp_size=32,
        max_threads_per_multi_processor=2048,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=49152,
        is_integrated=0,
        uuid=f"simulated-{index_of(device)}",
    )


def get_device_capability(device=None):
    return (9, 0)


def get_device_name(device=None):
    return NAME


def manual_seed(seed):
    _seed(current_device(), seed)


def manual_seed_all(seed):
    for device in range(device_count()):
        _seed(device, seed)


def _seed(device, seed):
    seed = int(seed) & (2**64 - 1)
    torch.ops.simulated_gpu.seed(device, seed - 2**64 if seed >= 2**63 else seed)  # an operation's numbers are signed


def get_rng_state(device="cuda"):
    return torch.ops.simulated_gpu.random_state(index_of(device))


def set_rng_state(new_state, device="cuda"):
    torch.ops.simulated_gpu.set_random_state(index_of(device), new_state.cpu())


def _nothing(*arguments):
    return None


def install():
    for function in (
        _exchange_device,
        _maybe_exchange_device,
        current_device,
        device_count,
        get_device_capability,
        get_device_name,
        get_device_properties,
        get_rng_state,
        is_available,
        manual_seed,
        manual_seed_all,
        set_device,
        set_rng_state,
        synchronize,
    ):
        setattr(torch.cuda, function.__name__, function)
    torch.cuda._lazy_init = _nothing
    torch.cuda._initialized = True
    torch.cuda._is_compiled = is_available
    torch.cuda._is_in_bad_fork = lambda: False
    torch.cuda.is_initialized = lambda: True
    torch.cuda.is_bf16_supported = lambda including_emulation=True: True
    for function in (get_rng_state, manual_seed, manual_seed_all, set_rng_state):
        setattr(torch.cuda.random, function.__name__, function)
    torch._C._cuda_getDeviceCount = device_count
    torch._C._cuda_getDevice = current_device
    torch.version.cuda = "13.0"
    torch.backends.cuda.is_built = lambda: True
