"""The predictions of a PyTorch model for rows."""

from collections.abc import Sequence
from typing import Any, Optional

import numpy
import torch

from horovod.spark.common._outputs import ROWS_AT_ONCE, columns_of
from horovod.spark.torch._losses import as_list


class Predictor:
    """A model and its input columns; called with rows. Picklable.

    Args:
      input_shapes: the shapes with which the model was trained. If all begin with -1, rows are combined into batches.
    """

    def __init__(
        self, model: torch.nn.Module, features: Sequence[str], input_shapes: Optional[Sequence[Sequence[int]]]
    ) -> None:
        self._model, self._features = model.eval(), list(features)
        self._shapes = [tuple(shape) for shape in input_shapes] if input_shapes else None
        can_batch = self._shapes is None or all(shape[0] == -1 for shape in self._shapes)
        self.rows_at_once = ROWS_AT_ONCE if can_batch else 1

    def loaded(self) -> "Predictor":
        return self

    def __call__(self, rows: Sequence[Any]) -> list[numpy.ndarray]:
        inputs = [torch.from_numpy(values) for values in columns_of(rows, self._features)]
        if self._shapes:
            inputs = [values.reshape(shape) for values, shape in zip(inputs, self._shapes)]
        with torch.no_grad():
            outputs = [output.numpy() for output in as_list(self._model(*inputs))]
        if len(rows) > 1 and any(output.ndim == 0 or len(output) != len(rows) for output in outputs):
            return [numpy.concatenate(parts) for parts in zip(*[self([row]) for row in rows])]  # each by itself
        return [output.reshape(len(rows), -1) for output in outputs]
