"""Two trainings in one job: each half of the workers tries a different learning rate, and the
better model wins:

horovodrun -np 4 python examples/pytorch_process_sets.py --lr 0.1 0.005
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

import digits
import horovod.torch as hvd

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--data-dir", help="MNIST's files; without it, the digits that come with scikit-learn")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=32, help="images per worker and step")
parser.add_argument("--lr", type=float, nargs=2, default=[0.1, 0.005], help="one for each half")
args = parser.parse_args()

# The even ranks and the odd ranks. Operations of one set are independent of those of the other.
halves = [hvd.ProcessSet(rule=lambda size, first=first: range(first, size, 2)) for first in (0, 1)]
hvd.init(process_sets=halves)
if hvd.size() < 2:
    raise SystemExit("This takes two workers or more: horovodrun -np 4 python ...")
torch.manual_seed(42)
torch.set_num_threads(1)
number = hvd.rank() % 2
half, lr = halves[number], args.lr[number]

train_set = digits.load(args.data_dir, train=True)
test_set = digits.load(args.data_dir, train=False)
sampler = torch.utils.data.distributed.DistributedSampler(train_set, num_replicas=half.size(), rank=half.rank())
loader = torch.utils.data.DataLoader(train_set, batch_size=args.batch_size, sampler=sampler)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.5)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(), process_set=half)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)  # from rank 0 to all ranks of the job

for epoch in range(args.epochs):
    sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()

images, labels = (tensor[half.rank() :: half.size()] for tensor in test_set.tensors)
with torch.no_grad():
    right = (model(images).argmax(dim=1) == labels).sum()
accuracy = hvd.allreduce(right, op=hvd.Sum, process_set=half).item() / len(test_set)

# Among all ranks again: everybody gets the best model.
accuracies = hvd.allgather_object(accuracy)
best = accuracies.index(max(accuracies))
hvd.broadcast_parameters(model.state_dict(), root_rank=best)
if hvd.rank() == 0:
    for first, rate in enumerate(args.lr):
        print(f"learning rate {rate}: test accuracy {accuracies[first]:.2%}")
    print(f"all {hvd.size()} workers have the model of rank {best}", flush=True)
