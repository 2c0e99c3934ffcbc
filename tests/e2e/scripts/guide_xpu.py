"""The script of the guide for Intel's XPU devices, its gaps filled, on CPU tensors where there is no such device."""

import argparse
import contextlib

import torch
import torch.nn.functional as F
import torch.optim as optim

with contextlib.suppress(ImportError):  # torch 2.5 and later have the device without it
    import intel_extension_for_pytorch  # noqa: F401

import digits
import horovod.torch as hvd

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--log-interval", type=int, default=10)
args = parser.parse_args()

# Initialize Horovod
hvd.init()
torch.manual_seed(hvd.rank())

# Each process uses the GPU of its local rank
devid = hvd.local_rank()
if hasattr(torch, "xpu") and torch.xpu.is_available():
    torch.xpu.set_device(devid)
    device = f"xpu:{devid}"
else:
    device = "cpu"

# Define dataset...
train_dataset, test_dataset = digits.datasets()

# Each rank trains with its own part of the data
train_sampler = torch.utils.data.distributed.DistributedSampler(train_dataset, num_replicas=hvd.size(), rank=hvd.rank())

train_loader = torch.utils.data.DataLoader(train_dataset, batch_size=32, sampler=train_sampler)

# Build model...
model = digits.Net()
model.to(device)

optimizer = optim.SGD(model.parameters(), lr=0.1)

# Add Horovod Distributed Optimizer
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

# All ranks start with rank 0's parameters.
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)

for epoch in range(args.epochs):
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print(f"Train Epoch: {epoch} [{batch_idx * len(data)}/{len(train_sampler)}]\tLoss: {loss.item()}")

images, labels = test_dataset.tensors
accuracy = (model(images.to(device)).argmax(dim=1).cpu() == labels).float().mean()
print(f"rank {hvd.rank()} of {hvd.size()}: accuracy {accuracy:.3f} on {next(model.parameters()).device}")
