"""Columns as a Keras model gets them."""

import importlib
from typing import Any, Optional

import numpy

from horovod.spark.common._arrays import check_whole_numbers
from horovod.spark.keras._files import Package

_FLOATS = ("float16", "float32", "float64")


def dtypes(tensors: Any) -> list[Optional[str]]:
    """The names of the types of a model's inputs or outputs; none if the model does not know them yet."""
    kinds = [getattr(tensor, "dtype", None) for tensor in tensors or []]
    return [getattr(kind, "name", kind) for kind in kinds]


def typed(name: str, column: numpy.ndarray, wanted: Optional[str], package: Package) -> numpy.ndarray:
    """Returns a column in the type in which the model gets it: whole numbers and booleans in their own, floats in the type
    `wanted` if that is one of floats, or in Keras's.

    Raises:
      ValueError: the column has whole numbers that Keras would change.
    """
    if column.dtype.kind == "f":
        return column.astype(wanted if wanted in _FLOATS else package.floatx)
    if wanted is not None:
        remedy = f"give the model an input of a type that does, as keras.Input(..., dtype={column.dtype.name!r}), or cast the column"
        check_whole_numbers(name, column, wanted, remedy)
    if (
        package.backend == "jax"
        and column.dtype.itemsize == 8
        and not importlib.import_module("jax").config.jax_enable_x64
    ):
        remedy = "JAX uses 64 bits with JAX_ENABLE_X64=1, in backend_env for a training, and on the executors for transform()"
        check_whole_numbers(name, column, "int32", remedy)
    return column


def all_typed(
    names: list[str], columns: list[numpy.ndarray], wanted: list[Optional[str]], package: Package
) -> list[numpy.ndarray]:
    """Does :func:`typed` for each column; `wanted` may be shorter."""
    missing = [None] * (len(columns) - len(wanted))
    return [typed(*each, package) for each in zip(names, columns, [*wanted, *missing])]
