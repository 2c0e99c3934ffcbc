"""The training of pytorch_complete.py as an elastic job: it goes on when workers come and go:

horovodrun -np 2 --min-np 1 python examples/pytorch_complete_elastic.py

With --checkpoint-dir FOLDER the same command continues from the newest checkpoint.
"""

import argparse
import contextlib
import math

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
parser.add_argument("--batches-per-commit", type=int, default=5, help="a failure costs no more batches than these")
parser.add_argument("--checkpoint-dir", help="a folder that all hosts share, for checkpoints")
parser.add_argument("--log-dir", help="for TensorBoard; a folder that all hosts share")
args = parser.parse_args()


def shape(done):
    """The share of the full learning rate when this share of the training is done: a warm-up, then a cosine."""
    return min(0.1 + 9 * done, 0.5 + 0.5 * math.cos(math.pi * done))


hvd.init()
torch.manual_seed(42 + hvd.rank())  # each rank drops out other units; the weights become rank 0's in train()
torch.set_num_threads(1)
use_cuda = torch.cuda.is_available()
device = torch.device("cuda", hvd.local_rank()) if use_cuda else torch.device("cpu")
dtype = torch.float16 if use_cuda else torch.bfloat16  # only float16 needs a scaled loss

train_set, test_set = digits.load(args.data_dir, train=True), digits.load(args.data_dir, train=False)
sampler = hvd.elastic.ElasticSampler(train_set, seed=42)  # divides the rest of an epoch again when the world changes
loader = torch.utils.data.DataLoader(train_set, batch_size=args.batch_size, sampler=sampler)

model = nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
if hasattr(torch.amp, "GradScaler"):
    scaler = torch.amp.GradScaler(device.type, enabled=use_cuda)
else:
    scaler = torch.cuda.amp.GradScaler(enabled=use_cuda)  # of older torch


def set_rate(state):
    """A schedule by samples: a step has more of them when there are more workers, and the total number of steps is unknown."""
    done = state.samples / (args.epochs * len(train_set))
    rate = args.lr * hvd.size() * shape(min(done, 1))
    for group in optimizer.param_groups:
        group["lr"] = rate
    return rate


def log_from(step):
    """A writer on rank 0, whichever worker that is now. What was logged from `step` on and then rolled back is hidden."""
    if not args.log_dir or hvd.rank() != 0:
        return contextlib.nullcontext()
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(args.log_dir, purge_step=step)


def train_epoch(state, writer):
    model.train()
    bar = tqdm(loader, desc=f"epoch {state.epoch}", disable=hvd.rank() != 0, mininterval=5)
    for index, (images, labels) in enumerate(bar):
        rate = set_rate(state)
        optimizer.zero_grad()
        with torch.autocast(device.type, dtype=dtype):
            loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        scaler.scale(loss).backward()  # averages the gradients, too
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # the same on all ranks
        scaler.step(optimizer)
        scaler.update()
        if writer and state.step % 10 == 0:
            writer.add_scalar("train/loss", loss.item(), state.step)  # of rank 0's batch
            writer.add_scalar("train/norm", norm.item(), state.step)
            writer.add_scalar("train/rate", rate, state.step)
        state.step += 1
        state.samples += len(images) * hvd.size()
        sampler.record_batch(index, len(images))
        if (index + 1) % args.batches_per_commit == 0:
            state.commit()


@torch.no_grad()
def test():
    """The mean loss and the accuracy over all ranks. Each sample counts once, on whichever rank it is."""
    model.eval()
    own = torch.utils.data.Subset(test_set, range(hvd.rank(), len(test_set), hvd.size()))
    sums = torch.zeros(2, dtype=torch.float64)
    for images, labels in torch.utils.data.DataLoader(own, batch_size=256):
        outputs, labels = model(images.to(device)), labels.to(device)
        sums[0] += F.cross_entropy(outputs, labels, reduction="sum").item()
        sums[1] += (outputs.argmax(dim=1) == labels).sum().item()
    return (hvd.allreduce(sums, name="test", op=hvd.Sum) / len(test_set)).tolist()


@hvd.elastic.run
def train(state):
    """Continues from `state`: called again after each change of workers, with the last commit."""
    with log_from(state.step) as writer:  # closed when the world changes
        while state.epoch <= args.epochs:
            train_epoch(state, writer)
            state.loss, state.accuracy = test()
            if writer:
                writer.add_scalar("test/loss", state.loss, state.step - 1)
                writer.add_scalar("test/accuracy", state.accuracy, state.step - 1)
            if hvd.rank() == 0:
                text = f"epoch {state.epoch}: test loss {state.loss:.4f}, test accuracy {state.accuracy:.2%}"
                print(f"{text}, workers: {hvd.size()}", flush=True)
            state.samples = state.epoch * len(train_set)
            state.epoch += 1
            sampler.set_epoch(state.epoch)
            state.commit()


state = hvd.elastic.TorchState(
    model, optimizer, sampler=sampler, scaler=scaler, epoch=1, step=0, samples=0, loss=math.inf, accuracy=0.0,
    checkpoint_dir=args.checkpoint_dir, checkpoint_every=10, checkpoint_best="max accuracy",
)  # fmt: skip
train(state)
