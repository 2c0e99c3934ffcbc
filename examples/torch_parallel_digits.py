"""Three kinds of parallelism at once, as large models are trained: a pipeline of stages, each stage's layers split over ranks
(tensor parallelism), and each part sharded over the ranks with other data (FSDP2):

horovodrun -np 4 python examples/torch_parallel_digits.py --tensor 2
horovodrun -np 4 python examples/torch_parallel_digits.py --tensor 1
torchrun --nproc-per-node 4 examples/torch_parallel_digits.py

The ranks that are left, RANKS / (STAGES * TENSOR), are those with other data.
"""

import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.data import DataLoader, DistributedSampler

import digits
import horovod.torch.distributed  # noqa: F401  # an installed wheel does not need it

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--data-dir", help="MNIST's files; without it, the digits that come with scikit-learn")
parser.add_argument("--stages", type=int, default=2, help="of the pipeline")
parser.add_argument("--tensor", type=int, default=2, help="over how many ranks a layer is split")
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--batch-size", type=int, default=32, help="images per pipeline and step")
parser.add_argument("--backend", default="hvd", help="of torch.distributed")
args = parser.parse_args()

dist.init_process_group(args.backend)
torch.manual_seed(42)
torch.set_num_threads(1)
if dist.get_world_size() % (args.stages * args.tensor):
    raise SystemExit("The number of ranks must be a multiple of the stages times --tensor.")
shape = (args.stages, dist.get_world_size() // (args.stages * args.tensor), args.tensor)
mesh = init_device_mesh("cpu", shape, mesh_dim_names=("stage", "data", "tensor"))
place = mesh.get_local_rank("stage")
first, last = place == 0, place == args.stages - 1


class Block(nn.Module):
    """Two layers with a connection around them."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(64, 128), nn.Linear(128, 64)

    def forward(self, data):
        return data + self.down(self.up(data).relu())


model = nn.Sequential()
if first:
    model.append(nn.Sequential(nn.Flatten(), nn.Linear(784, 64)))
block = Block()
parallelize_module(block, mesh["tensor"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
fully_shard(block, mesh=mesh["data"])
model.append(block)
if last:
    model.append(nn.Linear(64, 10))
fully_shard(model, mesh=mesh["data"])

train_set = digits.load(args.data_dir, train=True)
sampler = DistributedSampler(train_set, mesh["data"].size(), mesh.get_local_rank("data"), drop_last=True)
loader = DataLoader(train_set, batch_size=args.batch_size, sampler=sampler, drop_last=True)
stage = PipelineStage(model, place, args.stages, torch.device("cpu"), group=mesh.get_group("stage"))
schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=F.cross_entropy)
optimizer = torch.optim.Adam(model.parameters(), lr=0.003, foreach=False)

for epoch in range(1, args.epochs + 1):
    sampler.set_epoch(epoch)
    right = torch.zeros(2)
    for images, labels in loader:
        optimizer.zero_grad()
        output = schedule.step(*([images] if first else []), **({"target": labels} if last else {}))
        optimizer.step()
        if last:
            right += torch.tensor([(output.argmax(dim=1) == labels).sum(), len(labels)])
    dist.all_reduce(right)
    if dist.get_rank() == 0:
        print(
            f"epoch {epoch}: training accuracy {right[0] / right[1]:.2%} on {'x'.join(map(str, shape))} ranks",
            flush=True,
        )
dist.destroy_process_group()
