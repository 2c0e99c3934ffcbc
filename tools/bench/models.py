"""The benchmarks' models: the parameter shapes of real models, and two small complete models."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def resnet50_shapes():
    """The 161 parameters of ResNet-50, first layer first: 25.6 million numbers."""
    shapes = [(64, 3, 7, 7), (64,), (64,)]
    inside = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            for shape in ((width, inside, 1, 1), (width, width, 3, 3), (4 * width, width, 1, 1)):
                shapes += [shape, shape[:1], shape[:1]]
            if block == 0:
                shapes += [(4 * width, inside, 1, 1), (4 * width,), (4 * width,)]
            inside = 4 * width
    return shapes + [(1000, 2048), (1000,)]


def gpt_shapes(layers=17, width=256, words=8192, context=512):
    """The 208 parameters of a small GPT: 15.7 million numbers."""
    shapes = [(words, width), (context, width)]
    for _ in range(layers):
        shapes += [(width,), (width,)]
        shapes += [(3 * width, width), (3 * width,), (width, width), (width,)]
        shapes += [(width,), (width,)]
        shapes += [(4 * width, width), (4 * width,), (width, 4 * width), (width,)]
    return shapes + [(width,), (width,)]


class _Touch(torch.autograd.Function):
    """Returns x; backward makes the parameter's gradient with one pass over memory, like the last kernel of a real layer."""

    @staticmethod
    def forward(ctx, x, parameter, pattern):
        ctx.pattern = pattern
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, ctx.pattern * gradient, None


class Gradients(nn.Module):
    """A chain through all parameters, whose backward does nothing but make their gradients ready, last layer first."""

    def __init__(self, shapes):
        super().__init__()
        self.parameters_in_order = nn.ParameterList([nn.Parameter(torch.zeros(shape)) for shape in shapes])
        self.patterns = [torch.full(shape, 1e-3) for shape in shapes]

    def forward(self, x):
        for parameter, pattern in zip(self.parameters_in_order, self.patterns):
            x = _Touch.apply(x, parameter, pattern)
        return x


class Digits(nn.Module):
    """The network of examples/pytorch_mnist.py."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, kernel_size=5)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=5)
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


class _Block(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.shortcut = None
        if stride != 1 or inside != outside:
            self.shortcut = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class ResNet18(nn.Module):
    """11.7 million parameters; for images of any size from 32 up."""

    def __init__(self, classes=1000):
        super().__init__()
        layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        inside = 64
        for stage in range(4):
            for block in range(2):
                layers.append(_Block(inside, 64 << stage, 2 if stage > 0 and block == 0 else 1))
                inside = 64 << stage
        self.features = nn.Sequential(*layers)
        self.fc = nn.Linear(512, classes)

    def forward(self, x):
        return self.fc(self.features(x).mean((2, 3)))
