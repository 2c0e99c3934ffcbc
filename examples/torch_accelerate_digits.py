"""Accelerate over Horovod's engine, with checkpoints that it resumes from:

horovodrun -np 2 python examples/torch_accelerate_digits.py
torchrun --nproc-per-node 2 examples/torch_accelerate_digits.py --checkpoints folder
"""

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader

import digits
import horovod.torch.distributed  # noqa: F401  # an installed wheel does not need it

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--data-dir", help="MNIST's files; without it, the digits that come with scikit-learn")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=32, help="images per worker and step")
parser.add_argument("--checkpoints", help="a folder of all ranks; the training continues from the newest one in it")
parser.add_argument("--backend", default="hvd", help="of torch.distributed")
args = parser.parse_args()

dist.init_process_group(args.backend)  # before Accelerator, which keeps it; on CPUs it would choose Gloo
accelerator = Accelerator(cpu=True)
set_seed(42)
torch.set_num_threads(1)

loader = DataLoader(digits.load(args.data_dir, train=True), batch_size=args.batch_size, shuffle=True)
test_loader = DataLoader(digits.load(args.data_dir, train=False), batch_size=args.batch_size)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
model, optimizer, loader, test_loader = accelerator.prepare(model, optimizer, loader, test_loader)


def save(folder, epoch):
    """Gives a checkpoint its name when all ranks have written their part: a killed worker leaves no half of one."""
    part = Path(folder) / "part"
    accelerator.save_state(part)
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        os.rename(part, Path(folder) / f"epoch-{epoch}")


def load_newest(folder):
    """Returns how many epochs are done."""
    epochs = [int(checkpoint.name.split("-")[1]) for checkpoint in Path(folder).glob("epoch-*")]
    if epochs:
        accelerator.load_state(Path(folder) / f"epoch-{max(epochs)}")
    return max(epochs, default=0)


done = load_newest(args.checkpoints) if args.checkpoints else 0
for epoch in range(done + 1, args.epochs + 1):
    loader.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        accelerator.backward(F.cross_entropy(model(images), labels))
        optimizer.step()
    right = []
    with torch.no_grad():
        for images, labels in test_loader:
            right.append(accelerator.gather_for_metrics(model(images).argmax(dim=1) == labels))
    accelerator.print(f"epoch {epoch}: test accuracy {torch.cat(right).float().mean().item():.2%}", flush=True)
    if args.checkpoints:
        save(args.checkpoints, epoch)
accelerator.end_training()  # ends the group, too
