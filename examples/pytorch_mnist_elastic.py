"""The training of pytorch_mnist.py as an elastic job: it goes on when workers come and go:

horovodrun -np 2 --min-np 1 python examples/pytorch_mnist_elastic.py

With --checkpoint-dir it can be started again even after the loss of all workers.
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

import digits
import horovod.torch as hvd

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--data-dir", help="MNIST's files; without it, the digits that come with scikit-learn")
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch-size", type=int, default=64, help="images per worker and step")
parser.add_argument("--lr", type=float, default=0.05, help="learning rate of one worker")
parser.add_argument("--batches-per-commit", type=int, default=5, help="a failure costs no more batches than these")
parser.add_argument("--seed", type=int, default=42, help="of the first weights and the order of data")
parser.add_argument("--checkpoint-dir", help="a folder that all hosts share, for checkpoints")
args = parser.parse_args()

hvd.init()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

train_set = digits.load(args.data_dir, train=True)
test_set = digits.load(args.data_dir, train=False)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr * hvd.size(), momentum=0.5)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
# Divides the rest of an epoch among the workers again when their number changes.
sampler = hvd.elastic.ElasticSampler(train_set, seed=args.seed)
loader = torch.utils.data.DataLoader(train_set, batch_size=args.batch_size, sampler=sampler)


@hvd.elastic.run
def train(state):
    """Continues from `state`: called again after each change of workers, with the last commit."""
    while state.epoch <= args.epochs:
        for index, (images, labels) in enumerate(loader):
            state.optimizer.zero_grad()
            loss = F.cross_entropy(state.model(images), labels)
            loss.backward()
            state.optimizer.step()
            state.sampler.record_batch(index, len(images))
            if (index + 1) % args.batches_per_commit == 0:
                state.commit()
        accuracy = test()
        if hvd.rank() == 0:
            print(
                f"epoch {state.epoch}: test accuracy {accuracy:.2%}, workers: {hvd.size()}",
                flush=True,
            )
        state.epoch += 1
        state.sampler.set_epoch(state.epoch)
        state.commit()


def test():
    images, labels = (tensor[hvd.rank() :: hvd.size()] for tensor in test_set.tensors)
    with torch.no_grad():
        right = (model(images).argmax(dim=1) == labels).sum()
    return hvd.allreduce(right, name="right", op=hvd.Sum).item() / len(test_set)


def on_reset():
    """The learning rate follows the number of workers."""
    for group in optimizer.param_groups:
        group["lr"] = args.lr * hvd.size()


state = hvd.elastic.TorchState(model, optimizer, sampler=sampler, epoch=1, checkpoint_dir=args.checkpoint_dir)
state.register_reset_callbacks([on_reset])
train(state)
