"""Commits and restores of a training's state on the GPU beside copies of as many bytes to and from pinned memory, and what they consist of, in
turns. Prints a JSON line: GB/s, medians."""

import contextlib
import json
import os
import statistics
import time

import torch

from gpu_rank import IS_SIMULATED, device, hvd
from horovod import _ffi
from horovod.torch import _host_copies

MEGABYTES = 32 if IS_SIMULATED else 1000
TENSORS, WARM, TURNS = 64, 2, 5
WINDOW = 16 << 20

count = MEGABYTES * 1000 * 1000 // 4 // 3 // TENSORS
model = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(count, device=device)) for _ in range(TENSORS)])
optimizer = torch.optim.Adam(model.parameters())
for parameter in model.parameters():
    parameter.grad = torch.ones_like(parameter)
optimizer.step()
optimizer.zero_grad(set_to_none=True)
state = hvd.elastic.TorchState(model, optimizer, turn=0)
flat = torch.ones(3 * TENSORS * count, device=device)
pinned = torch.empty(flat.shape, pin_memory=True)
pageable = torch.ones(flat.shape)
window = torch.ones(WINDOW, dtype=torch.uint8, pin_memory=True)
size = 4 * flat.numel()
windows = [*[WINDOW] * (size // WINDOW), size % WINDOW]


def arrive():
    """Copies a commit to page-locked memory, without a consumer."""
    for _ in _host_copies.stretches(list(flat.chunk(3 * TENSORS)), lambda tensor: tensor):
        pass


def append():
    """What takes them to the store, from memory that is in the cache as far as the GPU's copies go there."""
    _ffi.store_begin(size)
    for each in windows:
        _ffi.store_append([window.data_ptr()], [each])


def append_on(cores):
    """The same if the process had fewer cores, as beside as many others."""
    usable = os.sched_getaffinity(0)
    try:
        move_threads(sorted(usable)[:cores])
        append()
    finally:
        move_threads(usable)


def move_threads(cores):
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.sched_setaffinity(int(thread), cores)


def fill():
    """The host's half of a restore."""
    for number, each in enumerate(windows):
        _ffi.copy(window.data_ptr(), [pageable.data_ptr() + number * WINDOW], [each])


WAYS = {
    "memcpy": ("memcpy", lambda: pinned.copy_(flat, non_blocking=True)),
    "back": ("memcpy back", lambda: flat.copy_(pinned, non_blocking=True)),
    "commit": ("commit", state.commit),
    "arrive": ("commit, only from the GPU to page-locked memory", arrive),
    "append": ("commit, only from there to the store, with a checksum", append),
    "append_1": ("the same on 1 core", lambda: append_on(1)),
    "append_4": ("the same on 4 cores", lambda: append_on(4)),
    "restore": ("restore", state.restore),
    "fill": ("restore, only from the store to page-locked memory", fill),
    "pageable": ("memcpy to pageable memory", lambda: pageable.copy_(flat)),
    "pageable_back": ("memcpy back from pageable memory", lambda: flat.copy_(pageable)),
}


@hvd.elastic.run
def measure(state):
    times = {name: [] for name in WAYS}
    for _ in range(WARM + TURNS):
        for name, (_what, way) in WAYS.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            way()
            torch.cuda.synchronize()
            times[name].append(time.perf_counter() - start)
    first = {"first_commit": times["commit"][0]}  # which takes the store's memory from the system
    return {**first, **{name: statistics.median(each[WARM:]) for name, each in times.items()}}


def seconds_to_lock():
    """Page-locking memory that is there, as a store that is locked as a whole would need once."""
    runtime = torch.cuda.cudart()
    start = time.perf_counter()
    assert int(runtime.cudaHostRegister(pageable.data_ptr(), size, 0)) == 0
    taken = time.perf_counter() - start
    assert int(runtime.cudaHostUnregister(pageable.data_ptr())) == 0
    return taken


medians = measure(state)
for parameter in model.parameters():
    assert parameter.device == device and torch.equal(parameter, model[0])
row = {"megabytes": MEGABYTES, "GBps": {what: round(size / medians[name] / 1e9, 2) for name, (what, _) in WAYS.items()}}
row["first_commit_ms"] = round(1000 * medians["first_commit"], 1)
row["share"] = round(medians["memcpy"] / medians["commit"], 2)
row["share_back"] = round(medians["back"] / medians["restore"], 2)
if not IS_SIMULATED:
    row["lock_ms"] = round(1000 * seconds_to_lock(), 1)
print(json.dumps(row), flush=True)
hvd.shutdown()
