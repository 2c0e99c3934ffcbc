"""Commits of a training's state on the GPU beside a copy of as many bytes to pinned memory, in turns. Prints a JSON line: GB/s, medians."""

import json
import statistics
import time

import torch

from gpu_rank import IS_SIMULATED, device, hvd

MEGABYTES = 32 if IS_SIMULATED else 1000
TENSORS, WARM, TURNS = 64, 3, 9

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


@hvd.elastic.run
def measure(state):
    ways = {
        "memcpy": lambda: pinned.copy_(flat, non_blocking=True),
        "commit": state.commit,
        "restore": state.restore,
    }
    times = {name: [] for name in ways}
    for turn in range(WARM + TURNS):
        for name, way in ways.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            way()
            torch.cuda.synchronize()
            if turn >= WARM:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(each) for name, each in times.items()}


medians = measure(state)
for parameter in model.parameters():
    assert parameter.device == device
row = {f"{name}_GBps": round(4 * flat.numel() / seconds / 1e9, 2) for name, seconds in medians.items()}
print(json.dumps({"megabytes": MEGABYTES, **row, "share": round(medians["memcpy"] / medians["commit"], 2)}), flush=True)
hvd.shutdown()
