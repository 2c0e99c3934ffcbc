"""DataFrames for the tests of the estimators."""

from pyspark.ml.linalg import DenseVector, SparseVector, Vectors, VectorUDT
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    FloatType,
    IntegerType,
    NullType,
    StructField,
    StructType,
)

TYPES = {"int": IntegerType(), "float": FloatType(), "bool": BooleanType(), "null": NullType(), "vector": VectorUDT()}
TYPES["array"] = ArrayType(IntegerType())


def table(spark, rows, **columns):
    """A DataFrame of these rows; `columns` says the type of each."""
    schema = StructType([StructField(name, TYPES[kind]) for name, kind in columns.items()])
    return spark.createDataFrame(rows, schema=schema)


def xor(spark, times=1):
    rows = [[a, b, Vectors.dense([a, b]), float(a ^ b), 0.1 + n / 10] for n, (a, b) in enumerate(CORNERS)] * times
    return table(spark, rows, x1="int", x2="int", features="vector", y="float", weight="float")


CORNERS = [(0, 0), (0, 1), (1, 0), (1, 1)]


def vectors(spark):
    """A column of dense vectors, one of sparse ones, one of both."""
    dense, sparse = DenseVector([1.0, 1.0]), SparseVector(2, {1: 1.0})
    rows = [[0.0, dense, SparseVector(2, {0: 2.0}), dense], [1.0, dense, sparse, sparse]]
    return table(spark, rows, float="float", dense="vector", sparse="vector", mixed="vector")
