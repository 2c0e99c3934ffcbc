"""A whole training: mixed precision, clipping, a schedule by steps, evaluation, TensorBoard, a progress bar, resume:

horovodrun -np 2 python examples/pytorch_complete.py

With --checkpoint FILE the same command continues after the last complete epoch. The same training as an elastic job:
pytorch_complete_elastic.py.
"""

import argparse
import contextlib
import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

import digits
import horovod.torch as hvd

try:
    from tqdm import tqdm
except ImportError:  # no progress bar

    def tqdm(batches, **_):
        return batches


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--data-dir", help="MNIST's files; without it, the digits that come with scikit-learn")
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch-size", type=int, default=32, help="images per worker and step")
parser.add_argument("--lr", type=float, default=0.05, help="learning rate of one worker")
parser.add_argument(
    "--checkpoint", help="a file for the state after each epoch; if it is there, training continues from it"
)
parser.add_argument("--log-dir", help="for TensorBoard")
args = parser.parse_args()


def shape(done):
    """The share of the full learning rate when this share of the training is done: a warm-up, then a cosine."""
    return min(0.1 + 9 * done, 0.5 + 0.5 * math.cos(math.pi * done))


hvd.init()
torch.manual_seed(42 + hvd.rank())  # each rank drops out other units; the weights become rank 0's below
torch.set_num_threads(1)
use_cuda = torch.cuda.is_available()
device = torch.device("cuda", hvd.local_rank()) if use_cuda else torch.device("cpu")
dtype = torch.float16 if use_cuda else torch.bfloat16  # only float16 needs a scaled loss

train_set, test_set = digits.load(args.data_dir, train=True), digits.load(args.data_dir, train=False)
sampler = torch.utils.data.distributed.DistributedSampler(train_set, num_replicas=hvd.size(), rank=hvd.rank())
loader = torch.utils.data.DataLoader(train_set, batch_size=args.batch_size, sampler=sampler)
own_tests = torch.utils.data.Subset(test_set, range(hvd.rank(), len(test_set), hvd.size()))
test_loader = torch.utils.data.DataLoader(own_tests, batch_size=256)

model = nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr * hvd.size(), momentum=0.9, weight_decay=1e-4)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
if hasattr(torch.amp, "GradScaler"):
    scaler = torch.amp.GradScaler(device.type, enabled=use_cuda)
else:
    scaler = torch.cuda.amp.GradScaler(enabled=use_cuda)  # of older torch
steps = args.epochs * len(loader)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: shape(step / steps))


def load():
    """Gives all ranks what rank 0 finds in the file, and returns the next epoch."""
    found = hvd.rank() == 0 and args.checkpoint and os.path.exists(args.checkpoint)
    saved = torch.load(args.checkpoint, map_location="cpu") if found else None
    saved = hvd.broadcast_object(saved, root_rank=0)
    if saved is None:
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        return 1
    for name, part in parts.items():
        part.load_state_dict(saved[name])
    return saved["epoch"] + 1


def save(epoch):
    """The file is complete or unchanged, also if the job is killed here."""
    if args.checkpoint and hvd.rank() == 0:
        saved = {name: part.state_dict() for name, part in parts.items()}
        torch.save({**saved, "epoch": epoch}, args.checkpoint + ".partial")
        os.replace(args.checkpoint + ".partial", args.checkpoint)


def log_from(step):
    """A writer on rank 0. What an earlier start has logged from `step` on is hidden."""
    if not args.log_dir or hvd.rank() != 0:
        return contextlib.nullcontext()
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(args.log_dir, purge_step=step)


def train(epoch, writer):
    model.train()
    sampler.set_epoch(epoch)  # another order in each epoch
    bar = tqdm(loader, desc=f"epoch {epoch}", disable=hvd.rank() != 0, mininterval=5)
    for step, (images, labels) in enumerate(bar, (epoch - 1) * len(loader)):
        optimizer.zero_grad()
        with torch.autocast(device.type, dtype=dtype):
            loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        scaler.scale(loss).backward()  # averages the gradients, too
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # the same on all ranks
        scaler.step(optimizer)
        scaler.update()
        if writer and step % 10 == 0:
            writer.add_scalar("train/loss", loss.item(), step)  # of rank 0's batch
            writer.add_scalar("train/norm", norm.item(), step)
            writer.add_scalar("train/rate", scheduler.get_last_lr()[0], step)
        scheduler.step()


@torch.no_grad()
def test():
    """The mean loss and the accuracy over all ranks. Each sample counts once, on whichever rank it is."""
    model.eval()
    sums = torch.zeros(2, dtype=torch.float64)
    for images, labels in test_loader:
        outputs, labels = model(images.to(device)), labels.to(device)
        sums[0] += F.cross_entropy(outputs, labels, reduction="sum").item()
        sums[1] += (outputs.argmax(dim=1) == labels).sum().item()
    return (hvd.allreduce(sums, name="test", op=hvd.Sum) / len(test_set)).tolist()


parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler}
first = load()
with log_from((first - 1) * len(loader)) as writer:
    for epoch in range(first, args.epochs + 1):
        train(epoch, writer)
        loss, accuracy = test()
        if writer:
            writer.add_scalar("test/loss", loss, epoch * len(loader) - 1)
            writer.add_scalar("test/accuracy", accuracy, epoch * len(loader) - 1)
        save(epoch)
        if hvd.rank() == 0:
            print(f"epoch {epoch}: test loss {loss:.4f}, test accuracy {accuracy:.2%}", flush=True)
