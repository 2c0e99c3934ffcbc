"""DeepSpeed's ZeRO, stages 0 to 3, on a backend of torch.distributed: with_deepspeed.py BACKEND FILE, under horovodrun"""

import json
import os
import sys
from typing import Any

import deepspeed
import torch

import horovod.torch.distributed  # noqa: F401

BACKEND, FILE = sys.argv[1:]
deepspeed.init_distributed(dist_backend=BACKEND, auto_mpi_discovery=False)
assert torch.distributed.get_backend() == BACKEND
rank = torch.distributed.get_rank()


def train(stage: int) -> list[Any]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    config = {
        "train_micro_batch_size_per_gpu": 4,
        "gradient_accumulation_steps": 2,
        "gradient_clipping": 1.0,
        "zero_optimization": {"stage": stage},
        "zero_allow_untested_optimizer": True,
    }
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    losses = []
    for step in range(6):
        data = torch.randn(4, 8, generator=torch.Generator().manual_seed(10 * step + rank))
        loss = torch.nn.functional.mse_loss(engine(data), data.sum(1, keepdim=True))
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
    return losses


found = {f"stage {stage}": train(stage) for stage in range(4)}
if rank == 0:
    with open(FILE, "w") as file:
        json.dump(found, file)
sys.stdout.flush()
os._exit(0)  # Gloo rarely aborts a process at its end
