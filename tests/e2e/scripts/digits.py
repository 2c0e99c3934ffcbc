"""scikit-learn's handwritten digits as torch datasets: real data that needs no download."""

import torch
from sklearn.datasets import load_digits
from torch.utils.data import TensorDataset


def datasets():
    """Returns (train, test): 1,500 and 297 images of shape (1, 8, 8), float32 in 0..1, with their digits as int64."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target, dtype=torch.int64)
    return TensorDataset(images[:1500], labels[:1500]), TensorDataset(images[1500:], labels[1500:])


class Net(torch.nn.Module):
    """Two layers: enough for 8x8 digits."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)
        )

    def forward(self, images):
        return torch.nn.functional.log_softmax(self.layers(images), dim=1)
