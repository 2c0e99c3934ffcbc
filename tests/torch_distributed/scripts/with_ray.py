"""Ray Train's TorchTrainer on a backend of torch.distributed: with_ray.py BACKEND FILE, starts its own Ray"""

import json
import os
import sys
import tempfile
from typing import Any

import ray
import torch
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer, prepare_model

BACKEND, FILE = sys.argv[1:]


def train(config: dict[str, Any]) -> None:
    assert torch.distributed.get_backend() == config["backend"]
    rank = torch.distributed.get_rank()
    torch.manual_seed(0)
    model = prepare_model(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for step in range(5):
        data = torch.randn(8, 8, generator=torch.Generator().manual_seed(10 * step + rank))
        loss = torch.nn.functional.mse_loss(model(data), data.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if rank == 0:
        with open(config["file"], "w") as file:
            json.dump({"losses": losses, "weights": [weight.tolist() for weight in model.parameters()]}, file)


ray.init(num_cpus=2, include_dashboard=False)
with tempfile.TemporaryDirectory() as folder:
    TorchTrainer(
        train,
        train_loop_config={"backend": BACKEND, "file": os.path.abspath(FILE)},
        torch_config=TorchConfig(backend=BACKEND),
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(storage_path=folder),
    ).fit()
ray.shutdown()
