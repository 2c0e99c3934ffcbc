"""Lightning's strategies on a backend of torch.distributed: with_lightning.py BACKEND FILE, under horovodrun"""

import json
import logging
import os
import sys
import warnings
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from lightning.pytorch.strategies import DDPStrategy, ModelParallelStrategy, Strategy
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, TensorDataset

import horovod.torch.distributed  # noqa: F401

BACKEND, FILE = sys.argv[1:]
warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Model(LightningModule):
    """A small network that logs the mean loss of all ranks."""

    def __init__(self, sharded: bool = False) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
        self.sharded = sharded

    def configure_model(self) -> None:
        """Shards the layers over the ranks."""
        if self.sharded:
            fully_shard(self.layers, mesh=self.device_mesh["data_parallel"])

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], index: int) -> torch.Tensor:
        loss = torch.nn.functional.mse_loss(self.layers(batch[0]), batch[1])
        self.log("loss", loss, on_epoch=True, on_step=False, sync_dist=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.01)


def whole(weight: Any) -> list[Any]:
    return (weight.full_tensor() if hasattr(weight, "full_tensor") else weight).tolist()


def train(strategy: Strategy, sharded: bool = False) -> list[Any]:
    seed_everything(0, verbose=False)
    data = torch.randn(64, 8)
    loader = DataLoader(TensorDataset(data, data.sum(1, keepdim=True)), batch_size=8)
    model = Model(sharded)
    trainer = Trainer(
        accelerator="cpu",
        devices=2,
        strategy=strategy,
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, loader)
    assert torch.distributed.get_backend() == BACKEND
    return [trainer.callback_metrics["loss"].item(), [whole(weight) for weight in model.parameters()]]


found = {"ddp": train(DDPStrategy(process_group_backend=BACKEND))}
found["model parallel"] = train(
    ModelParallelStrategy(data_parallel_size=2, tensor_parallel_size=1, process_group_backend=BACKEND), sharded=True
)
if torch.distributed.get_rank() == 0:
    with open(FILE, "w") as file:
        json.dump(found, file)
sys.stdout.flush()
os._exit(0)  # Gloo rarely aborts a process at its end
