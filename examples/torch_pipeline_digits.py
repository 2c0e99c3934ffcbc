"""A pipeline: each rank has some layers, and parts of a batch follow each other through the ranks:

horovodrun -np 2 python examples/torch_pipeline_digits.py
torchrun --nproc-per-node 2 examples/torch_pipeline_digits.py
"""

import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.utils.data import DataLoader

import digits
import horovod.torch.distributed  # noqa: F401  # an installed wheel does not need it

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--data-dir", help="MNIST's files; without it, the digits that come with scikit-learn")
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--batch-size", type=int, default=64, help="images per step")
parser.add_argument("--backend", default="hvd", help="of torch.distributed")
args = parser.parse_args()

dist.init_process_group(args.backend)
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(42)
torch.set_num_threads(1)


def layers_of(stage):
    first = [nn.Flatten(), nn.Linear(784, 64), nn.ReLU()] if stage == 0 else [nn.Linear(64, 64), nn.ReLU()]
    return nn.Sequential(*first, *([nn.Linear(64, 10)] if stage == size - 1 else []))


train_set = digits.load(args.data_dir, train=True)
# The same batches on all ranks: the first one uses the images, the last one the labels.
shuffled = torch.Generator().manual_seed(42)
loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True, drop_last=True, generator=shuffled)
layers = layers_of(rank)
stage = PipelineStage(layers, rank, size, torch.device("cpu"))
schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=F.cross_entropy)
optimizer = torch.optim.SGD(layers.parameters(), lr=0.1, momentum=0.5)

for epoch in range(1, args.epochs + 1):
    right = torch.zeros(1)
    for images, labels in loader:
        optimizer.zero_grad()
        output = schedule.step(*([images] if rank == 0 else []), **({"target": labels} if rank == size - 1 else {}))
        optimizer.step()
        if rank == size - 1:
            right += (output.argmax(dim=1) == labels).sum()
    dist.broadcast(right, src=size - 1)
    if rank == 0:
        print(f"epoch {epoch}: training accuracy {right.item() / (len(loader) * args.batch_size):.2%}", flush=True)
dist.destroy_process_group()
