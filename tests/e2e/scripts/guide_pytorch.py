"""The script of Horovod's PyTorch guide, its gaps filled: how most users' scripts look."""

import argparse

import torch
import torch.nn.functional as F
import torch.optim as optim

import digits
import horovod.torch as hvd

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--log-interval", type=int, default=10)
args = parser.parse_args()

# Initialize Horovod
hvd.init()
torch.manual_seed(hvd.rank())  # different on purpose: the broadcast below has to make the ranks equal

# Each process uses the GPU of its local rank
if torch.cuda.is_available():
    torch.cuda.set_device(hvd.local_rank())

# Define dataset...
train_dataset, test_dataset = digits.datasets()

# Each rank trains with its own part of the data
train_sampler = torch.utils.data.distributed.DistributedSampler(train_dataset, num_replicas=hvd.size(), rank=hvd.rank())

train_loader = torch.utils.data.DataLoader(train_dataset, batch_size=32, sampler=train_sampler)

# Build model...
model = digits.Net()
if torch.cuda.is_available():
    model.cuda()

optimizer = optim.SGD(model.parameters(), lr=0.05 * hvd.size(), momentum=0.9)

# Add Horovod Distributed Optimizer
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

# All ranks start with rank 0's parameters.
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)

for epoch in range(args.epochs):
    for batch_idx, (data, target) in enumerate(train_loader):
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print(f"Train Epoch: {epoch} [{batch_idx * len(data)}/{len(train_sampler)}]\tLoss: {loss.item()}")

images, labels = test_dataset.tensors
accuracy = (model(images).argmax(dim=1) == labels).float().mean()
weights = torch.cat([p.detach().flatten() for p in model.parameters()])
gathered = hvd.allgather(weights.unsqueeze(0))
print(
    f"rank {hvd.rank()} of {hvd.size()}: accuracy {accuracy:.3f}, weights equal on all ranks: {bool((gathered == weights).all())}"
)
