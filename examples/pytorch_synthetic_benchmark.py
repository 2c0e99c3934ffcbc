"""How many images per second a ResNet trains, on random images:

horovodrun -np 2 python examples/pytorch_synthetic_benchmark.py
"""

import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

import horovod.torch as hvd

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--depth", type=int, default=18, choices=[18, 34, 50], help="of the ResNet")
parser.add_argument("--batch-size", type=int, default=8, help="images per worker and step")
parser.add_argument("--image-size", type=int, default=64, help="ImageNet's usual one is 224")
parser.add_argument("--warmup", type=int, default=2, help="steps before the clock starts")
parser.add_argument("--steps", type=int, default=3, help="steps per measurement")
parser.add_argument("--measurements", type=int, default=3)
parser.add_argument("--fp16-allreduce", action="store_true", help="send gradients as float16")
parser.add_argument("--threads", type=int, default=1, help="of torch, per worker")
args = parser.parse_args()


def convolution(channels_in, channels_out, size, stride=1):
    """A convolution with batch normalization."""
    return nn.Sequential(
        nn.Conv2d(channels_in, channels_out, size, stride, size // 2, bias=False),
        nn.BatchNorm2d(channels_out),
    )


class Block(nn.Module):
    """Two convolutions beside a shortcut or, for ResNet-50, three with a bottleneck."""

    def __init__(self, channels_in, channels, stride, bottleneck):
        super().__init__()
        self.channels_out = 4 * channels if bottleneck else channels
        if bottleneck:
            sizes = [(channels_in, channels, 1), (channels, channels, 3, stride)]
            sizes.append((channels, self.channels_out, 1))
        else:
            sizes = [(channels_in, channels, 3, stride), (channels, channels, 3)]
        self.layers = nn.ModuleList(convolution(*size) for size in sizes)
        self.shortcut = nn.Identity()
        if stride > 1 or channels_in != self.channels_out:
            self.shortcut = convolution(channels_in, self.channels_out, 1, stride)

    def forward(self, x):
        y = x
        for layer in self.layers[:-1]:
            y = F.relu(layer(y))
        return F.relu(self.layers[-1](y) + self.shortcut(x))


def resnet(depth):
    """He et al., Deep Residual Learning for Image Recognition, 2015, table 1."""
    layers = [convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    blocks = [2, 2, 2, 2] if depth == 18 else [3, 4, 6, 3]
    for stage, count in enumerate(blocks):
        for i in range(count):
            stride = 2 if stage > 0 and i == 0 else 1
            layers.append(Block(channels, 64 << stage, stride, depth == 50))
            channels = layers[-1].channels_out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


hvd.init()
torch.set_num_threads(args.threads)
use_cuda = torch.cuda.is_available()
device = torch.device("cuda", hvd.local_rank()) if use_cuda else torch.device("cpu")
model = resnet(args.depth).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size())
optimizer = hvd.DistributedOptimizer(
    optimizer,
    named_parameters=model.named_parameters(),
    compression=hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none,
)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
images = torch.randn(args.batch_size, 3, args.image_size, args.image_size, device=device)
labels = torch.randint(1000, (args.batch_size,), device=device)


def steps(count):
    for _ in range(count):
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
    if use_cuda:
        torch.cuda.synchronize()


steps(args.warmup)
speeds = []
for _ in range(args.measurements):
    started = time.perf_counter()
    steps(args.steps)
    speeds.append(args.batch_size * args.steps / (time.perf_counter() - started))
speed = hvd.allreduce(torch.tensor(speeds).mean(), name="speed").item()
if hvd.rank() == 0:
    parameters = sum(p.numel() for p in model.parameters())
    print(
        f"ResNet-{args.depth} ({parameters / 1e6:.1f} million parameters): {speed:.1f} images/s per worker, {speed * hvd.size():.1f} on {hvd.size()} "
        "worker(s)"
    )
