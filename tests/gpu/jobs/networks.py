"""Small networks and their data, the same wherever they are made."""

import torch
from torch import nn

import horovod.torch as hvd

CLASSES, WORDS, LENGTH = 10, 40, 12


class Convolutions(nn.Module):
    """Two convolutions over images of 12 x 12."""

    def __init__(self, normalized=False):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 16, 3)
        self.norm = nn.BatchNorm2d(8) if normalized else nn.Identity()
        self.out = nn.Linear(16 * 4 * 4, CLASSES)

    def forward(self, x):
        x = torch.relu(self.norm(self.first(x)))
        x = torch.nn.functional.max_pool2d(torch.relu(self.second(x)), 2)
        return self.out(x.flatten(1))


class Transformer(nn.Module):
    """Two layers of attention over sequences of words."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, 32)
        layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(32, CLASSES)

    def forward(self, x):
        return self.out(self.layers(self.words(x)).mean(1))


def make(kind, seed):
    """A network on the CPU: convolutions, normalized (with batch norm) or transformer."""
    torch.manual_seed(seed)
    return Transformer() if kind == "transformer" else Convolutions(kind == "normalized")


def with_sync_batch_norm(model):
    model.norm = hvd.SyncBatchNorm(8)
    return model


def batches(kind, count, size):
    """Pairs of inputs and classes, on the CPU."""
    generator = torch.Generator().manual_seed(7)
    for _ in range(count):
        if kind == "transformer":
            inputs = torch.randint(0, WORDS, (size, LENGTH), generator=generator)
        else:
            inputs = torch.randn(size, 3, 12, 12, generator=generator)
        yield inputs, torch.randint(0, CLASSES, (size,), generator=generator)
