"""The arrays that a model gets of columns: the types that they can have, and those that hold a column's whole numbers."""

from collections.abc import Mapping, Sequence
from typing import Any, Optional

import numpy
import pyarrow
from pyspark.ml.linalg import Vector, VectorUDT
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StructType,
)

Types = Mapping[str, Any]  # by column: the dtype of its values

_NUMPY_TYPES = {
    ByteType: numpy.int8,
    ShortType: numpy.int16,
    IntegerType: numpy.int32,
    LongType: numpy.int64,
    FloatType: numpy.float32,
    DoubleType: numpy.float64,
    BooleanType: numpy.bool_,
}
_EXACT_UP_TO = {"bfloat16": 2**8, "float16": 2**11, "float32": 2**24, "float64": 2**53}


def array_types(schema: StructType, columns: Sequence[str]) -> Types:
    """Returns the types of the columns' values; of an array those of its elements.

    Raises:
      ValueError: a model can't get a column of this type.
    """
    return {name: _array_type(name, schema[name].dataType) for name in columns}


def _array_type(name: str, spark_type: Any) -> Any:
    if isinstance(spark_type, VectorUDT):
        return numpy.float64
    element = spark_type
    while isinstance(element, ArrayType):
        element = element.elementType
    if type(element) not in _NUMPY_TYPES:
        raise ValueError(_refusal(name, spark_type.simpleString()))
    return _NUMPY_TYPES[type(element)]


def check_arrow_types(schema: pyarrow.Schema, columns: Sequence[str]) -> None:
    """Raises ValueError for a column of Parquet files that a model can't get because of its type."""
    for name in columns:
        kind = schema.field(name).type
        while pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind):
            kind = kind.value_type
        if not (pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind) or pyarrow.types.is_boolean(kind)):
            raise ValueError(_refusal(name, str(schema.field(name).type)))


def _refusal(name: str, kind: str) -> str:
    return (
        f"column {name} is of type {kind}: a model gets numbers, booleans, arrays or vectors of them; cast the column, or "
        "convert its values in transformation_fn"
    )


def arrays_of(rows: Sequence[Any], names: Sequence[str], types: Types) -> list[numpy.ndarray]:
    """The values of some rows, an array for each column, in these types; of a column without one, in that of its Python values.

    Raises:
      ValueError: the values make no array.
    """
    return [_array(name, [_plain(row[name]) for row in rows], types.get(name)) for name in names]


def _array(name: str, values: list[Any], kind: Any) -> numpy.ndarray:
    if any(value is None for value in values) and (kind is None or not numpy.issubdtype(kind, numpy.floating)):
        raise ValueError(f"column {name} has rows without a value (null), which only columns of floats may have")
    try:
        return numpy.asarray(values, dtype=kind)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the values of column {name} make no array: {error}") from None


def _plain(value: Any) -> Any:
    return value.toArray() if isinstance(value, Vector) else value


def check_whole_numbers(name: str, column: numpy.ndarray, target: str, remedy: str) -> None:
    """Raises ValueError if the column has whole numbers that are others in the type `target`, the name of a dtype.

    Args:
      remedy: what to do then.
    """
    limits = _exact_range(target)
    if column.dtype.kind not in "iu" or not column.size or limits is None:
        return
    for value in (int(column.min()), int(column.max())):
        if not limits[0] <= value <= limits[1]:
            raise ValueError(
                f"column {name} has the whole number {value}, which {target} does not hold exactly: {remedy}"
            )


def _exact_range(target: str) -> Optional[tuple[int, int]]:
    if target in _EXACT_UP_TO:
        return -_EXACT_UP_TO[target], _EXACT_UP_TO[target]
    if target.startswith(("int", "uint")):
        limits = numpy.iinfo(target)
        return int(limits.min), int(limits.max)
    return None
