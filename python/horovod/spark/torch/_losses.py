"""The loss and the metrics of a model with one output for each label."""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, Optional

import torch

Function = Callable[..., torch.Tensor]


def calculate_loss(
    outputs: Sequence[torch.Tensor],
    labels: Sequence[torch.Tensor],
    loss_weights: Sequence[float],
    loss_fns: Sequence[Function],
    sample_weights: Optional[torch.Tensor] = None,
) -> torch.Tensor:
    """Returns the weighted sum of all labels' losses. With weights of rows, the functions are called with ``reduction="none"``, and
    a label's loss is the mean of each row's loss times the row's weight.
    """
    losses = [
        loss_fn(output, label)
        if sample_weights is None
        else (loss_fn(output, label, reduction="none").flatten() * sample_weights).mean()
        for output, label, loss_fn in zip(outputs, labels, loss_fns)
    ]
    return functools.reduce(operator.add, [loss * weight for loss, weight in zip(losses, loss_weights)])


def as_list(outputs: Any) -> list[torch.Tensor]:
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


def shaped_labels(
    labels: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], label_shapes: Optional[Sequence[Sequence[int]]]
) -> list[torch.Tensor]:
    """Returns the labels in these shapes; without shapes, each in the shape of its output if it has as many values."""
    if label_shapes:
        return [label.reshape(tuple(shape)) for label, shape in zip(labels, label_shapes)]
    return [
        label.reshape(output.shape) if output.numel() == label.numel() else label
        for label, output in zip(labels, outputs)
    ]


class Means:
    """The means of an epoch: of the loss, and of each metric for each label.

    Args:
      groups: lists with one function, or one for each label.
    """

    def __init__(self, groups: Sequence[Sequence[Function]], label_names: Sequence[str]) -> None:
        self._groups = [list(group) * len(label_names) if len(group) == 1 else list(group) for group in groups]
        self._names = [[f"group_{number}_{name}" for name in label_names] for number in range(len(groups))]
        self._sums = torch.zeros(1 + sum(map(len, self._groups)), dtype=torch.float64)
        self._count = 0

    def update(self, loss: torch.Tensor, outputs: Sequence[torch.Tensor], labels: Sequence[torch.Tensor]) -> None:
        with torch.no_grad():
            values = [
                function(output, label)
                for group in self._groups
                for function, output, label in zip(group, outputs, labels)
            ]
            found = [torch.as_tensor(value).detach().double().cpu().mean() for value in (loss, *values)]
        self._sums += torch.stack(found)
        self._count += 1

    def result(self, averaged: Callable[[torch.Tensor], torch.Tensor]) -> dict[str, Any]:
        """Returns {"loss": ..., "all_metrics": [{name: mean}]}; with `averaged`, the means of all ranks."""
        loss, *values = averaged(self._sums / max(1, self._count)).tolist()
        rest = iter(values)
        return {"loss": loss, "all_metrics": [{name: next(rest) for name in names} for names in self._names]}
