"""The step of a model whose backward does nothing but make its gradients ready, with DistributedOptimizer and without, in turns. Prints a JSON line
for each model: microseconds, medians."""

import json
import statistics
import sys
import time
from pathlib import Path

import torch

from gpu_rank import IS_SIMULATED, device, hvd

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools/bench"))

import models

TURNS = 5 if IS_SIMULATED else 60


class NoOptimizer(torch.optim.Optimizer):
    """Leaves the weights unchanged, so that only communication is measured."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    def step(self, closure=None):
        pass


def make_step(shapes, distributed, name):
    network = models.Gradients(shapes).to(device)
    network.patterns = [pattern.to(device) for pattern in network.patterns]
    optimizer = NoOptimizer(network.parameters())
    if distributed:
        named = [(f"{name}.{key}", value) for key, value in network.named_parameters()]
        optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=named)
    one = torch.ones((), device=device, requires_grad=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        network(one).backward()
        optimizer.step()

    return step


def microseconds(step):
    torch.cuda.synchronize()
    start = time.perf_counter()
    step()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1e6


for model, shapes in (("ResNet-50", models.resnet50_shapes()), ("GPT", models.gpt_shapes())):
    steps = [make_step(shapes, distributed, model) for distributed in (False, True)]
    times = [[], []]
    for turn in range(TURNS + 3):
        for which in (0, 1):
            taken = microseconds(steps[which])
            if turn >= 3:
                times[which].append(taken)
    plain, ours = map(statistics.median, times)
    print(json.dumps({"model": model, "plain_us": round(plain), "added_us": round(ours - plain)}), flush=True)
hvd.shutdown()
