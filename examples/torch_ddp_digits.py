"""DistributedDataParallel of torch over Horovod's engine. Only the backend's name differs from a script for Gloo:

horovodrun -np 2 python examples/torch_ddp_digits.py
torchrun --nproc-per-node 2 examples/torch_ddp_digits.py
"""

import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

import digits
import horovod.torch.distributed  # noqa: F401  # an installed wheel does not need it

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--data-dir", help="MNIST's files; without it, the digits that come with scikit-learn")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=32, help="images per worker and step")
parser.add_argument("--backend", default="hvd", help="of torch.distributed")
args = parser.parse_args()

dist.init_process_group(args.backend)
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(42)
torch.set_num_threads(1)

train_set = digits.load(args.data_dir, train=True)
test_set = digits.load(args.data_dir, train=False)
sampler = DistributedSampler(train_set)
loader = DataLoader(train_set, batch_size=args.batch_size, sampler=sampler)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)

for epoch in range(1, args.epochs + 1):
    sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
    images, labels = (tensor[rank::size] for tensor in test_set.tensors)
    with torch.no_grad():
        right = (model.module(images).argmax(dim=1) == labels).sum()
    dist.all_reduce(right)
    if rank == 0:
        print(f"epoch {epoch}: test accuracy {right.item() / len(test_set):.2%}", flush=True)
dist.destroy_process_group()
