"""What a model says of rows of a DataFrame."""

import itertools
import numbers
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Optional

import numpy
import torch
from pyspark.ml.linalg import DenseVector, SparseVector, Vector, VectorUDT
from pyspark.sql.types import StructField, StructType

from horovod.spark.common._columns import Metadata, python_type
from horovod.spark.common.util import get_spark_df_output_schema
from horovod.spark.torch._losses import as_list

_ROWS_AT_ONCE = 256


class Predictor:
    """A model and the columns that it gets. It can be pickled.

    Args:
      input_shapes: as the model was trained with. If -1 stands first in all, rows are put together.
      label_types: Spark's, of the labels that its outputs stand for.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        features: Sequence[str],
        input_shapes: Optional[Sequence[Sequence[int]]],
        label_types: Sequence[type],
    ) -> None:
        self._model, self._features, self._label_types = model.eval(), list(features), list(label_types)
        self._shapes = [tuple(shape) for shape in input_shapes] if input_shapes else None
        can_batch = self._shapes is None or all(shape[0] == -1 for shape in self._shapes)
        self._rows_at_once = _ROWS_AT_ONCE if can_batch else 1

    def rows(self, rows: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        """The rows, each with the values of the outputs behind its own."""
        rest = iter(rows)
        while some := list(itertools.islice(rest, self._rows_at_once)):
            for row, values in zip(some, self.values(some)):
                yield (*row, *values)

    def values(self, rows: Sequence[Any]) -> Iterator[list[Any]]:
        """Of each row, a value for each output, of its label's type."""
        outputs = self._outputs(rows)
        for number in range(len(rows)):
            yield [_value(output[number], kind) for output, kind in zip(outputs, self._label_types)]

    def _outputs(self, rows: Sequence[Any]) -> list[torch.Tensor]:
        """Of each output a tensor whose first dimension is that of the rows."""
        inputs = [_tensor([row[name] for row in rows]) for name in self._features]
        if self._shapes:
            inputs = [values.reshape(shape) for values, shape in zip(inputs, self._shapes)]
        with torch.no_grad():
            outputs = as_list(self._model(*inputs))
        if len(rows) == 1:
            return [output.reshape(1, -1) for output in outputs]
        if any(output.dim() == 0 or len(output) != len(rows) for output in outputs):  # rows do not stand for themselves
            return [torch.cat(parts) for parts in zip(*[self._outputs([row]) for row in rows])]
        return [output.reshape(len(rows), -1) for output in outputs]


def _tensor(values: Sequence[Any]) -> torch.Tensor:
    rows = [value.toArray() if isinstance(value, Vector) else value for value in values]
    return torch.as_tensor(numpy.asarray(rows, dtype=numpy.float32))


def _value(output: torch.Tensor, kind: type) -> Any:
    values = output.double().numpy()
    if kind is SparseVector:
        indices = numpy.flatnonzero(values)
        return SparseVector(len(values), indices, values[indices])
    if kind is DenseVector or len(values) != 1:
        return DenseVector(values)
    target = python_type(kind)
    value = values[0].item()
    return target(round(value)) if issubclass(target, numbers.Integral) else target(value)


def output_schema(
    df: Any, labels: Sequence[str], outputs: Sequence[str], metadata: Metadata, predictor: Predictor
) -> StructType:
    """Of the DataFrame with the outputs; one that is a vector in the first row is one in all."""
    schema = get_spark_df_output_schema(df.schema, labels, outputs, metadata)
    own = len(df.schema.fields)
    first = next(predictor.rows(df.limit(1).collect()), None)
    if first is None:
        return schema
    fields = [
        StructField(field.name, VectorUDT(), True) if isinstance(value, Vector) else field
        for field, value in zip(schema.fields[own:], first[own:])
    ]
    return StructType([*schema.fields[:own], *fields])
