"""FSDP2 (fully_shard) and a distributed checkpoint over Horovod's engine. Each rank keeps a part of the weights:

horovodrun -np 2 python examples/torch_fsdp_digits.py
torchrun --nproc-per-node 2 examples/torch_fsdp_digits.py --checkpoint folder
"""

import argparse
import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, DistributedSampler

import digits
import horovod.torch.distributed  # noqa: F401  # an installed wheel does not need it

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--data-dir", help="MNIST's files; without it, the digits that come with scikit-learn")
parser.add_argument("--epochs", type=int, default=3, help="of this run")
parser.add_argument("--batch-size", type=int, default=32, help="images per worker and step")
parser.add_argument("--checkpoint", help="a folder of all ranks; the training continues from there")
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
mesh = init_device_mesh("cpu", (size,))
for layer in (model[1], model[3]):
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)

if args.checkpoint and os.path.exists(args.checkpoint):
    weights, state = get_state_dict(model, optimizer)
    dcp.load({"model": weights, "optimizer": state}, checkpoint_id=args.checkpoint)
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=state)

for epoch in range(1, args.epochs + 1):
    sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
    images, labels = (tensor[rank::size] for tensor in test_set.tensors)
    with torch.no_grad():
        right = (model(images).argmax(dim=1) == labels).sum()
    dist.all_reduce(right)
    if rank == 0:
        print(f"epoch {epoch}: test accuracy {right.item() / len(test_set):.2%}", flush=True)
if args.checkpoint:
    weights, state = get_state_dict(model, optimizer)
    dcp.save({"model": weights, "optimizer": state}, checkpoint_id=args.checkpoint)
dist.destroy_process_group()
