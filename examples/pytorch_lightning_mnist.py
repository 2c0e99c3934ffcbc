"""Handwritten digits with PyTorch Lightning, 1.6 to 1.9 or 2.x:

horovodrun -np 2 python examples/pytorch_lightning_mnist.py
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

try:
    import lightning.pytorch as pl
except ImportError:
    import pytorch_lightning as pl

import digits
import horovod.lightning  # noqa: F401 - for strategy="horovod"
import horovod.torch as hvd

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--data-dir", help="MNIST's files; without it, the digits that come with scikit-learn")
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch-size", type=int, default=32, help="images per worker and step")
parser.add_argument("--lr", type=float, default=0.05, help="learning rate of one worker")
args = parser.parse_args()


class Digits(pl.LightningModule):
    def __init__(self, lr):
        super().__init__()
        self.lr = lr
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))

    def training_step(self, batch, _):
        images, labels = batch
        return F.cross_entropy(self.net(images), labels)

    def validation_step(self, batch, _):
        """Sums over all workers: with Horovod, Lightning 1.x does not average over them."""
        images, labels = batch
        right = (self.net(images).argmax(dim=1) == labels).float().mean()
        self.log("accuracy", hvd.allreduce(right, name="right"), batch_size=len(labels))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.5)


hvd.init()
torch.set_num_threads(1)
train_set = digits.load(args.data_dir, train=True)
test_set = digits.load(args.data_dir, train=False)
# The learning rate grows with the number of workers. Lightning 1.x does that itself.
lr = args.lr if pl.__version__.startswith("1.") else args.lr * hvd.size()
trainer = pl.Trainer(
    strategy="horovod",
    devices=1,
    max_epochs=args.epochs,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
)
trainer.fit(
    Digits(lr),
    torch.utils.data.DataLoader(train_set, batch_size=args.batch_size, shuffle=True),
    torch.utils.data.DataLoader(test_set, batch_size=args.batch_size),
)
if hvd.rank() == 0:
    print("test accuracy {:.2%}".format(trainer.callback_metrics["accuracy"]), flush=True)
