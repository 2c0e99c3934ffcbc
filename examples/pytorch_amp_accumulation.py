"""Mixed precision with a GradScaler, and gradients accumulated over several batches:

    horovodrun -np 2 python examples/pytorch_amp_accumulation.py

The scaler is used as usual: it sees the reduced gradients, so all workers skip the
  same steps. The last
group of an epoch may be short.
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
parser.add_argument("--batch-size", type=int, default=32, help="images per worker and backward pass")
parser.add_argument("--accumulate", type=int, default=4, help="backward passes per step")
args = parser.parse_args()

hvd.init()
torch.manual_seed(42)
torch.set_num_threads(1)
use_cuda = torch.cuda.is_available()
device = torch.device("cuda", hvd.local_rank()) if use_cuda else torch.device("cpu")
if hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler"):
    scaler = torch.amp.GradScaler(device.type)
else:
    scaler = torch.cuda.amp.GradScaler(enabled=use_cuda)  # older torch scales on CUDA only

train_set, test_set = digits.load(args.data_dir, train=True), digits.load(args.data_dir, train=False)
sampler = torch.utils.data.distributed.DistributedSampler(train_set, num_replicas=hvd.size(), rank=hvd.rank())
loader = torch.utils.data.DataLoader(train_set, batch_size=args.batch_size, sampler=sampler)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * hvd.size(), momentum=0.5)
optimizer = hvd.DistributedOptimizer(
    optimizer,
    named_parameters=model.named_parameters(),
    backward_passes_per_step=args.accumulate,
)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)

for epoch in range(1, args.epochs + 1):
    sampler.set_epoch(epoch)
    for index, (images, labels) in enumerate(loader):
        dtype = torch.float16 if use_cuda else torch.bfloat16
        with torch.autocast(device.type, dtype=dtype):
            loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        scaler.scale(loss / args.accumulate).backward()
        if (index + 1) % args.accumulate == 0 or index + 1 == len(loader):
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    images, labels = (tensor[hvd.rank() :: hvd.size()].to(device) for tensor in test_set.tensors)
    with torch.no_grad():
        right = (model(images).argmax(dim=1) == labels).sum()
    accuracy = hvd.allreduce(right, name="right", op=hvd.Sum).item() / len(test_set)
    if hvd.rank() == 0:
        print(
            f"epoch {epoch}: test accuracy {accuracy:.2%}, loss scale {scaler.get_scale():.0f}",
            flush=True,
        )
