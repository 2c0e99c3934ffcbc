"""How many images per second a small residual network trains, on random images:

horovodrun -np 2 python examples/pytorch_synthetic_benchmark.py
"""

import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

import horovod.torch as hvd

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("--batch-size", type=int, default=16, help="images per worker and step")
parser.add_argument("--image-size", type=int, default=32)
parser.add_argument("--width", type=int, default=16, help="channels of the first layer")
parser.add_argument("--warmup", type=int, default=2, help="steps before the clock starts")
parser.add_argument("--steps", type=int, default=5, help="steps per epoch")
parser.add_argument("--epochs", type=int, default=5, help="how often to measure")
parser.add_argument("--fp16-allreduce", action="store_true", help="send gradients as float16")
parser.add_argument("--threads", type=int, default=1, help="of torch, per worker")
args = parser.parse_args()


class Block(nn.Module):
    def __init__(self, channels_in, channels_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels_out)
        self.shortcut = nn.Conv2d(channels_in, channels_out, 1, stride, bias=False)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def network(width):
    return nn.Sequential(
        nn.Conv2d(3, width, 3, 1, 1),
        Block(width, width, 1),
        Block(width, 2 * width, 2),
        Block(2 * width, 4 * width, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4 * width, 10),
    )


hvd.init()
torch.set_num_threads(args.threads)
device = (
    torch.device("cuda", hvd.local_rank()) if torch.cuda.is_available() else torch.device("cpu")
)
model = network(args.width).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size())
optimizer = hvd.DistributedOptimizer(
    optimizer,
    named_parameters=model.named_parameters(),
    compression=hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none,
)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
images = torch.randn(args.batch_size, 3, args.image_size, args.image_size, device=device)
labels = torch.randint(10, (args.batch_size,), device=device)


def step():
    optimizer.zero_grad()
    F.cross_entropy(model(images), labels).backward()
    optimizer.step()


for _ in range(args.warmup):
    step()
speeds = []
for _ in range(args.epochs):
    started = time.perf_counter()
    for _ in range(args.steps):
        step()
    speeds.append(args.batch_size * args.steps / (time.perf_counter() - started))
speed = hvd.allreduce(torch.tensor(speeds).mean(), name="speed").item()
if hvd.rank() == 0:
    print(
        "{:.1f} images/s per worker, {:.1f} on {} worker(s)".format(
            speed, speed * hvd.size(), hvd.size()
        )
    )
