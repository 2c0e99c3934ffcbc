"""The predictions of a PyTorch model for rows."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Optional

import numpy
import torch

from horovod.spark.common._arrays import Types, arrays_of
from horovod.spark.common._outputs import ROWS_AT_ONCE
from horovod.spark.torch._floats import as_floats
from horovod.spark.torch._losses import as_list

# Returns the output, or outputs, of a model for a row.
Function = Callable[[torch.nn.Module, Any], Any]


@dataclasses.dataclass
class Prediction:
    """The output of a model for a row of a DataFrame. Picklable.

    Fields:
      features: the names of the columns.
      shapes: the shapes with which the model was trained.
      only_floats: whether the model gets all columns as float32; else whole numbers and booleans in their own types, and floats
        in that of its parameters.
      types: of the columns; those that are missing are those of the values.
    """

    features: list[str]
    shapes: Optional[Sequence[Sequence[int]]]
    only_floats: bool
    types: Types = dataclasses.field(default_factory=dict)

    def __call__(self, model: torch.nn.Module, row: Any) -> list[torch.Tensor]:
        return self.of_rows(model, [row])

    def of_rows(self, model: torch.nn.Module, rows: Sequence[Any]) -> list[torch.Tensor]:
        """Returns the outputs for some rows together."""
        inputs = [
            self._typed(name, torch.from_numpy(values), model)
            for name, values in zip(self.features, arrays_of(rows, self.features, self.types))
        ]
        if self.shapes:
            inputs = [values.reshape(tuple(shape)) for values, shape in zip(inputs, self.shapes)]
        with torch.no_grad():
            return as_list(model(*inputs))

    def _typed(self, name: str, values: torch.Tensor, model: torch.nn.Module) -> torch.Tensor:
        if self.only_floats:
            return as_floats(name, values)
        if not values.is_floating_point():
            return values
        floats = (value.dtype for value in model.parameters() if value.is_floating_point())
        return values.to(next(floats, torch.get_default_dtype()))

    def can_batch(self) -> bool:
        """Whether rows can be combined: all shapes begin with -1."""
        return not self.shapes or all(shape[0] == -1 for shape in self.shapes)


class Predictor:
    """A model and the function that predicts with it; called with rows. Picklable."""

    def __init__(self, model: torch.nn.Module, function: Function) -> None:
        self._model, self._function = model.eval(), function
        can_batch = isinstance(function, Prediction) and function.can_batch()
        self.rows_at_once = ROWS_AT_ONCE if can_batch else 1

    def loaded(self) -> "Predictor":
        return self

    def __call__(self, rows: Sequence[Any]) -> list[numpy.ndarray]:
        if len(rows) > 1 and isinstance(self._function, Prediction):
            outputs = list(map(_array, self._function.of_rows(self._model, rows)))
            if all(output.ndim and len(output) == len(rows) for output in outputs):
                return [output.reshape(len(rows), -1) for output in outputs]
        return [numpy.stack(parts) for parts in zip(*map(self._outputs_of, rows))]

    def _outputs_of(self, row: Any) -> list[numpy.ndarray]:
        return [_array(output).reshape(-1) for output in as_list(self._function(self._model, row))]


def _array(output: object) -> numpy.ndarray:
    return output.detach().cpu().numpy() if isinstance(output, torch.Tensor) else numpy.asarray(output)
