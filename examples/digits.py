"""Handwritten digits for the examples: MNIST's files if you have them, else the digits that come
with scikit-learn."""

import gzip
import os
import struct

import torch
from torch.utils.data import TensorDataset

_FILES = {
    True: ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    False: ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


def _find(folder, name):
    for place in (folder, os.path.join(folder, "raw"), os.path.join(folder, "MNIST", "raw")):
        for path in (os.path.join(place, name), os.path.join(place, name + ".gz")):
            if os.path.exists(path):
                return path
    raise SystemExit(f"There is no {name} in {folder} (nor in its raw/ or MNIST/raw/).")


def _read_idx(path):
    """Reads one file of MNIST's IDX format: 0, 0, type, dimensions, sizes as big-endian int32,
    bytes."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        data = file.read()
    if len(data) < 4 or data[:3] != b"\0\0\x08":
        raise SystemExit(f"{path} is not an IDX file of bytes.")
    shape = struct.unpack_from(f">{data[3]}I", data, 4)
    return torch.frombuffer(bytearray(data[4 + 4 * data[3] :]), dtype=torch.uint8).reshape(shape)


def _mnist(folder, train):
    images, labels = (_read_idx(_find(folder, name)) for name in _FILES[train])
    return images.float().div(255).unsqueeze(1), labels.long()


def _sklearn_digits(train):
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise SystemExit("Give MNIST's folder with --data-dir, or install scikit-learn for its digits.") from None
    digits = load_digits()  # 1797 images of 8x8, sorted by writer
    images = torch.tensor(digits.images.tolist()).div(16).unsqueeze(1)
    images = torch.nn.functional.interpolate(images, size=(28, 28))
    labels = torch.tensor(digits.target.tolist())
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    chosen = order[:1500] if train else order[1500:]
    return images[chosen], labels[chosen]


def load(folder, train):
    """The training or test set: images [N, 1, 28, 28], mean about 0, and labels [N].

    Args:
      folder: with MNIST's files, as they come or as torchvision stores them; None for
        scikit-learn's digits.
      train: the training set, else the test set.
    """
    images, labels = _mnist(folder, train) if folder else _sklearn_digits(train)
    return TensorDataset((images - 0.1307) / 0.3081, labels)
