"""The content of a DataFrame's columns, and the form in which they are written to Parquet files."""

from collections.abc import Sequence
from typing import Any, Optional

import numpy
import pyarrow
from pyspark.ml.functions import vector_to_array
from pyspark.ml.linalg import DenseVector, SparseVector, VectorUDT
from pyspark.sql import functions
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

Metadata = dict[str, dict[str, Any]]  # by column

# How a column is written: as it is, as an array, or as [size, indices, values, zeros] of a sparse vector.
NOCHANGE, ARRAY, CUSTOM_SPARSE = "nochange", "array", "custom_sparse_format"

_PYTHON_TYPES = {
    ByteType: int,
    ShortType: int,
    IntegerType: int,
    LongType: int,
    FloatType: float,
    DoubleType: float,
    BooleanType: bool,
    StringType: str,
    BinaryType: bytes,
}


def python_type(spark_type: type) -> Any:
    """Returns the Python type for a scalar of this Spark type. Raises ValueError for a type that has none."""
    if spark_type not in _PYTHON_TYPES:
        raise ValueError(f"a column of {spark_type.__name__} holds no scalars that a model can say")
    return _PYTHON_TYPES[spark_type]


def output_type(spark_type: Any) -> Any:
    """Returns the class of the column with a model's outputs for a label of this class: the same, but that of floats for one that
    `transformation_fn` has made a number, as a decimal, a date or bytes."""
    has_own = spark_type in _PYTHON_TYPES and spark_type is not BinaryType
    return spark_type if has_own or spark_type in (DenseVector, SparseVector, ArrayType) else DoubleType


def is_vector(field: StructField) -> bool:
    return isinstance(field.dataType, VectorUDT)


def measured_metadata(df: Any) -> Metadata:
    """The metadata of all columns, found by looking at all rows: for each a dictionary with

    - `spark_data_type`: the class; DenseVector if any vector is one, else SparseVector;
    - `is_sparse_vector_only`;
    - `shape`: the number of values, zeros included;
    - `max_size`: the largest number of values that are stored;
    - `intermediate_format`: NOCHANGE, ARRAY or CUSTOM_SPARSE.

    Raises: ValueError for a column whose rows have different numbers of values.
    """
    fields = df.schema.fields
    described = df.select(*[_description(field).alias(f"c{number}") for number, field in enumerate(fields)])
    found = described.agg(*[_summary(f"c{number}") for number in range(len(fields))]).first()
    return {field.name: _metadata_of(field, summary) for field, summary in zip(fields, found)}


_DESCRIPTION = StructType(
    [StructField("dense", BooleanType()), StructField("shape", LongType()), StructField("size", LongType())]
)


def _description(field: StructField) -> Any:
    """Returns a column that describes another one, in each row: whether it is dense, how many values it has, and how many of them
    are stored.
    """
    column = functions.col(f"`{field.name}`")
    if is_vector(field):
        return functions.udf(lambda value: _described(value), _DESCRIPTION)(
            column
        )  # Spark reads no annotations of lambdas
    length = functions.size(column) if isinstance(field.dataType, ArrayType) else functions.lit(1)
    return functions.struct(functions.lit(False).alias("dense"), length.alias("shape"), length.alias("size"))


def _described(value: Any) -> Any:
    if value is None:
        return None
    stored = value.array if isinstance(value, DenseVector) else value.values
    return isinstance(value, DenseVector), len(value), len(stored)


def _summary(name: str) -> Any:
    return functions.struct(
        functions.max(f"{name}.dense").alias("dense"),
        functions.min(f"{name}.shape").alias("least_shape"),
        functions.max(f"{name}.shape").alias("shape"),
        functions.max(f"{name}.size").alias("size"),
    )


def _metadata_of(field: StructField, summary: Any) -> dict[str, Any]:
    sparse = is_vector(field) and not summary["dense"]
    if summary["shape"] is None:
        raise ValueError(f"column {field.name} has no values")
    if summary["shape"] != summary["least_shape"]:
        raise ValueError(
            f"column {field.name} has rows of {summary['least_shape']} to {summary['shape']} values: all must have as many"
        )
    data_type = (SparseVector if sparse else DenseVector) if is_vector(field) else type(field.dataType)
    return {
        "spark_data_type": data_type,
        "is_sparse_vector_only": sparse,
        "shape": summary["shape"],
        "intermediate_format": (CUSTOM_SPARSE if sparse else ARRAY) if is_vector(field) else NOCHANGE,
        "max_size": summary["size"] if sparse else summary["shape"],
    }


def metadata_of_schema(schema: pyarrow.Schema, columns: Sequence[str]) -> Metadata:
    """Returns the metadata as far as the schema of Parquet files contains it; `shape` and `max_size` are None. Lists count as
    dense vectors.
    """
    return {
        name: {
            "spark_data_type": _type_of_arrow(schema.field(name).type),
            "is_sparse_vector_only": False,
            "shape": None,
            "intermediate_format": NOCHANGE,
            "max_size": None,
        }
        for name in columns
    }


# Of those that Spark does not write. A type holds all their numbers, but for the last.
_TYPES_OF_ARROW = {
    pyarrow.uint8(): ShortType,
    pyarrow.uint16(): IntegerType,
    pyarrow.uint32(): LongType,
    pyarrow.float16(): FloatType,
    pyarrow.uint64(): LongType,
}


def _type_of_arrow(arrow_type: pyarrow.DataType) -> Any:
    if pyarrow.types.is_list(arrow_type) or pyarrow.types.is_large_list(arrow_type):
        return DenseVector
    return _TYPES_OF_ARROW.get(arrow_type) or type(from_arrow_type(arrow_type))


def without_vectors(df: Any, metadata: Optional[Metadata]) -> Any:
    """Returns the DataFrame with vectors as arrays, in the format of the metadata; without metadata all values are written."""
    for field in df.schema.fields:
        if is_vector(field):
            df = df.withColumn(field.name, _array_of(field.name, (metadata or {}).get(field.name)))
    return df


def _array_of(name: str, metadata: Optional[dict[str, Any]]) -> Any:
    column = functions.col(f"`{name}`")
    if metadata is None or metadata["intermediate_format"] != CUSTOM_SPARSE:
        return vector_to_array(column)
    most = metadata["max_size"]
    return functions.udf(lambda vector: packed(vector, most), ArrayType(DoubleType()))(column)


def packed(vector: SparseVector, max_size: int) -> list[float]:
    """Returns the stored values as a list of 1 + 2 * max_size numbers: [size, indices, values, zeros]."""
    zeros = numpy.zeros(2 * (max_size - len(vector.indices)))
    parts = ([len(vector.indices)], vector.indices, vector.values, zeros)
    return numpy.concatenate(parts).tolist()  # type: ignore[no-any-return]


def unpacked(rows: numpy.ndarray, shape: int) -> numpy.ndarray:
    """Undoes :func:`packed` for many rows: returns an array of [rows, shape] with all values."""
    sizes = rows[:, 0].astype(numpy.int64)
    dense = numpy.zeros((len(rows), shape), rows.dtype)
    of_row = numpy.repeat(numpy.arange(len(rows)), sizes)
    place = numpy.arange(len(of_row)) - numpy.repeat(numpy.cumsum(sizes) - sizes, sizes)
    indices = rows[of_row, 1 + place].astype(numpy.int64)
    dense[of_row, indices] = rows[of_row, 1 + sizes[of_row] + place]
    return dense


def dense_columns(columns: dict[str, numpy.ndarray], metadata: Metadata) -> dict[str, numpy.ndarray]:
    """Returns the columns that were read, with sparse vectors in full."""
    return {
        name: unpacked(values, metadata[name]["shape"])
        if metadata.get(name, {}).get("intermediate_format") == CUSTOM_SPARSE
        else values
        for name, values in columns.items()
    }
