"""Accelerate on a backend of torch.distributed: with_accelerate.py BACKEND FILE, under horovodrun"""

import json
import os
import sys

import torch
import torch.distributed as dist
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

import horovod.torch.distributed  # noqa: F401

BACKEND, FILE = sys.argv[1:]
dist.init_process_group(BACKEND)  # Accelerate keeps it; on CPUs it would choose Gloo

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
torch.manual_seed(0)
data = torch.randn(64, 8)
loader = DataLoader(TensorDataset(data, data.sum(1, keepdim=True)), batch_size=4)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
model, optimizer, loader = accelerator.prepare(model, torch.optim.Adam(model.parameters(), lr=0.01), loader)
losses = []
for _ in range(2):
    for batch, target in loader:
        with accelerator.accumulate(model):
            loss = torch.nn.functional.mse_loss(model(batch), target)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            losses += accelerator.gather(loss.detach()).tolist()
assert dist.get_backend() == BACKEND and accelerator.num_processes == dist.get_world_size() == 2
found = accelerator.gather_for_metrics([dist.get_rank()], use_gather_object=True)
assert found == [0, 1], found
accelerator.wait_for_everyone()
if accelerator.is_main_process:
    with open(FILE, "w") as file:
        json.dump({"losses": losses, "weights": [weight.tolist() for weight in model.parameters()]}, file)
accelerator.end_training()
sys.stdout.flush()
os._exit(0)  # Gloo rarely aborts a process at its end
