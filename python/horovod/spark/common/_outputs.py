"""A model's predictions for the rows of a DataFrame, as further columns."""

import itertools
import numbers
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Callable

import cloudpickle
import numpy
from pyspark.ml.linalg import DenseVector, SparseVector, Vector, VectorUDT
from pyspark.sql.types import StructField, StructType

from horovod.spark.common._columns import Metadata, output_type, python_type
from horovod.spark.common.util import get_spark_df_output_schema

ROWS_AT_ONCE = 256
_PIECE = 32 << 20  # bytes of a broadcast variable

# Gives for each output of a model the values of some rows, [rows, values].
Predict = Callable[[Sequence[Any]], list[numpy.ndarray]]


def _broadcast(context: Any, data: bytes) -> list[Any]:
    """Data as broadcast variables of Spark. Each one is in the memory of Spark's JVM for a moment, and one of a whole model might
    not fit into it."""
    return [context.broadcast(data[start : start + _PIECE]) for start in range(0, len(data), _PIECE)]


def _joined(pieces: Sequence[Any]) -> Any:
    return cloudpickle.loads(b"".join(piece.value for piece in pieces))


class Outputs:
    """Adds the outputs of a model to the rows of a DataFrame.

    Args:
      load: makes the function that predicts, in each task. It can be pickled.
      labels: names of the columns that the outputs stand for, whose types they get.
      outputs: names of the outputs' columns.
      metadata: of the labels.
      rows_at_once: how many rows are given to the function.
    """

    def __init__(
        self,
        load: Callable[[], Predict],
        labels: Sequence[str],
        outputs: Sequence[str],
        metadata: Metadata,
        rows_at_once: int = ROWS_AT_ONCE,
    ) -> None:
        self._load, self._labels, self._outputs, self._metadata = load, list(labels), list(outputs), metadata
        self._rows_at_once = rows_at_once

    def added_to(self, df: Any) -> Any:
        """The DataFrame with the outputs; one that is a vector in the first row is one in all."""
        schema = self._schema(df)
        pickled = cloudpickle.dumps(self)  # Spark's own pickling does not use the script's registrations
        pieces = _broadcast(df.sparkSession.sparkContext, pickled)
        rows = df.rdd.mapPartitions(lambda rows: _joined(pieces).rows(rows))
        return df.sparkSession.createDataFrame(rows, schema)

    def rows(self, rows: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        """The rows, each with the values of the outputs behind its own."""
        predict, rest = self._load(), iter(rows)
        kinds = [self._metadata[name]["spark_data_type"] for name in self._labels]
        while some := list(itertools.islice(rest, self._rows_at_once)):
            found = predict(some)
            for number, row in enumerate(some):
                yield (*row, *[_value(values[number], kind) for values, kind in zip(found, kinds)])

    def _schema(self, df: Any) -> StructType:
        schema = get_spark_df_output_schema(df.schema, self._labels, self._outputs, self._metadata)
        own = len(df.schema.fields)
        first = next(self.rows(df.limit(1).collect()), None)
        if first is None:
            return schema
        fields = [
            StructField(field.name, VectorUDT(), True) if isinstance(value, Vector) else field
            for field, value in zip(schema.fields[own:], first[own:])
        ]
        return StructType([*schema.fields[:own], *fields])


def _value(values: numpy.ndarray, kind: type) -> Any:
    """Returns one output of one row, converted to the type of its label."""
    if kind is SparseVector:
        values = values.astype(numpy.float64)
        indices = numpy.flatnonzero(values)
        return SparseVector(len(values), indices, values[indices])
    if kind is DenseVector or len(values) != 1:
        return DenseVector(values.astype(numpy.float64))
    target = python_type(output_type(kind))
    is_whole = values.dtype.kind in "iub"  # one of 64 bits is not a float first, which would change large ones
    value = values[0].item() if is_whole else float(values[0])
    return target(round(value)) if issubclass(target, numbers.Integral) else target(value)
