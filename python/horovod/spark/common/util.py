"""Training data from DataFrames: Parquet files in a store, and their metadata."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import numpy
from pyspark.ml.linalg import DenseVector, SparseVector, VectorUDT
from pyspark.sql import functions
from pyspark.sql.types import ArrayType, BooleanType, NumericType, StructField, StructType

from horovod.spark.common._arrays import check_arrow_types
from horovod.spark.common._columns import (
    Metadata,
    is_vector,
    measured_metadata,
    metadata_of_schema,
    output_type,
    without_vectors,
)
from horovod.spark.common.cache import DataProperties, TrainingDataCache
from horovod.spark.common.store import Store

_cache = TrainingDataCache()


def check_validation(validation: Any, df: Any = None) -> None:
    """Raises ValueError for what is neither a part of the rows, from 0 to below 1, nor the name of a column of the DataFrame."""
    if isinstance(validation, str):
        if df is not None and validation not in df.columns:
            raise ValueError(f"validation={validation!r}: the DataFrame has no such column")
        if df is not None and not isinstance(df.schema[validation].dataType, (BooleanType, NumericType)):
            kind = df.schema[validation].dataType.simpleString()
            raise ValueError(f"Validation column {validation} is of type {kind}: it must be a boolean or a number")
    elif validation and not isinstance(validation, float):
        raise ValueError(f"validation must be a float or the name of a column, not {type(validation).__name__}")
    elif validation and not 0 <= validation < 1:
        raise ValueError(f"validation={validation} must be at least 0 and less than 1")


@contextlib.contextmanager
def prepare_data(
    num_processes: int,
    store: Store,
    df: Any,
    label_columns: Sequence[str],
    feature_columns: Optional[Sequence[str]],
    validation: Any = None,
    sample_weight_col: Optional[str] = None,
    compress_sparse: bool = False,
    partitions_per_process: int = 10,
    verbose: int = 0,
) -> Iterator[int]:
    """A context manager that writes the columns of a DataFrame to the store, unless it has them from an earlier call, and gives
    the number of the data set. Within the context nothing else is written there.

    Args:
      num_processes: that will read it; with `partitions_per_process` it says how many files are written.
      feature_columns: default: all but the labels.
      validation: a part of the rows, taken at random, or the name of a column that is true or above 0 in rows for
        validation.
      compress_sparse: whether columns of sparse vectors are written in a short form, for which all rows are looked at.

    Raises: ValueError for columns that are not there, or a validation without rows.
    """
    check_validation(validation, df)
    if num_processes <= 0 or partitions_per_process <= 0:
        raise ValueError(
            f"num_proc={num_processes} and partitions_per_process={partitions_per_process} must both be > 0"
        )
    columns = columns_of(df, label_columns, feature_columns, sample_weight_col)
    key = _cache.create_key(df, store, validation, tuple(columns), compress_sparse)
    with _cache.use_key(key):
        with _cache.lock:
            number = _cache.find(key, store, bool(validation))
            if number is None:
                number = _cache.next_number(key)
                partitions = num_processes * partitions_per_process
                _say(verbose, f"writing the DataFrame to {store.get_train_data_path(number)}")
                metadata = _write(df, columns, store, number, validation, compress_sparse, partitions, num_processes)
                properties = _properties(store, number, columns, metadata, validation)
                _cache.set_properties(number, properties)
                _say(verbose, f"train_rows={properties.train_rows} val_rows={properties.val_rows}")
        yield number


def _say(verbose: int, line: str) -> None:
    if verbose:
        print(line, flush=True)


def columns_of(df: Any, labels: Sequence[str], features: Optional[Sequence[str]], weight: Optional[str]) -> list[str]:
    """The columns of the DataFrame that a training needs, each once; without `features`: all. Raises ValueError for one that
    is not there."""
    if not labels:
        raise ValueError("Parameter label_columns cannot be None or empty")
    if features is None:
        features = [name for name in df.columns if name not in labels]
    named = [("Label", name) for name in labels] + [("Feature", name) for name in features]
    named += [("Sample weight", weight)] if weight else []
    for kind, name in named:
        if name not in df.columns:
            raise ValueError(f"{kind} column {name} does not exist in the DataFrame")
    return list(dict.fromkeys(name for _, name in named))


def _write(
    df: Any,
    columns: list[str],
    store: Store,
    number: int,
    validation: Any,
    compress_sparse: bool,
    partitions: int,
    num_processes: int,
) -> Optional[Metadata]:
    """Writes the data set; returns the metadata, if all rows were looked at."""
    wanted = list(dict.fromkeys([*columns, validation])) if isinstance(validation, str) else columns
    df = df.select(*[functions.col(f"`{name}`") for name in wanted])
    metadata = measured_metadata(df) if compress_sparse and any(map(is_vector, df.schema.fields)) else None
    train_df, val_df, ratio = train_val_split(without_vectors(df, metadata), validation)
    parts = [(train_df, store.get_train_data_path(number), 1 - ratio)]
    if val_df is not None:
        parts.append((val_df, store.get_val_data_path(number), ratio))
    for part, path, share in parts:
        files = max(int(partitions * share), num_processes)
        part.coalesce(files).write.mode("overwrite").parquet(path)
    return metadata


def train_val_split(df: Any, validation: Any) -> tuple[Any, Any, float]:
    """(rows for training, rows for validation or None, about which part the latter are)"""
    if not validation:
        return df, None, 0.0
    if isinstance(validation, float):
        train_df, val_df = df.randomSplit([1.0 - validation, validation])
        return train_df, val_df, validation
    column = functions.col(f"`{validation}`")
    is_boolean = isinstance(df.schema[validation].dataType, BooleanType)
    train_df = df.filter(~column if is_boolean else column == 0).drop(validation)
    val_df = df.filter(column if is_boolean else column > 0).drop(validation)
    ratio = df.select(functions.avg((column if is_boolean else column > 0).cast("double"))).first()[0]
    return train_df, val_df, ratio or 0.0


def _properties(
    store: Store,
    number: Optional[int],
    columns: Sequence[str],
    metadata: Optional[Metadata],
    validation: Any,
    only_numbers: bool = False,
) -> DataProperties:
    train_rows, size, schema = _measure(store, store.get_train_data_path(number), "training")
    val_rows = _measure(store, store.get_val_data_path(number), "validation")[0] if validation else 0
    missing = [name for name in columns if name not in schema.names]
    if missing:
        raise ValueError(
            f"{store.get_train_data_path(number)} has no column {missing[0]}; it has {', '.join(schema.names)}"
        )
    if only_numbers:
        check_arrow_types(schema, columns)
    return DataProperties(train_rows, val_rows, metadata or metadata_of_schema(schema, columns), size / train_rows)


def _measure(store: Store, path: str, kind: str) -> tuple[int, int, Any]:
    """(rows, bytes, schema)"""
    if not store.exists(path):
        raise ValueError(f"{path} path does not exist in the store")
    dataset = store.get_parquet_dataset(path)
    groups = [group for fragment in dataset.fragments for group in fragment.row_groups]
    rows = sum(group.num_rows for group in groups)
    if rows == 0:
        raise ValueError(f"No rows found in {kind} dataset: {path}")
    return rows, sum(group.total_byte_size for group in groups), dataset.schema


def get_simple_meta_from_parquet(
    store: Store,
    label_columns: Sequence[str],
    feature_columns: Sequence[str],
    sample_weight_col: Optional[str] = None,
    dataset_idx: Optional[int] = None,
    validation: Any = None,
    only_numbers: bool = False,
) -> DataProperties:
    """Returns the metadata of a data set that is already in the store. Raises ValueError for one without rows or these columns; with
    `only_numbers` also for columns of which a model gets no numbers."""
    weight = [sample_weight_col] if sample_weight_col else []
    columns = [*feature_columns, *label_columns, *weight]
    return _properties(store, dataset_idx, columns, None, validation, only_numbers)


def get_dataset_properties(dataset_idx: int) -> DataProperties:
    """Returns the properties of a data set of :func:`prepare_data`."""
    return _cache.properties(dataset_idx)


def clear_training_cache() -> None:
    """Forgets the data sets that were written: each DataFrame is written again."""
    _cache.clear()


def check_shape_compatibility(
    metadata: Metadata,
    feature_columns: Sequence[str],
    label_columns: Sequence[str],
    input_shapes: Optional[Sequence[Sequence[int]]] = None,
    output_shapes: Optional[Sequence[Sequence[int]]] = None,
    label_shapes: Optional[Sequence[Sequence[int]]] = None,
) -> None:
    """Raises ValueError if shapes are not one for each column, or have not as many values as the columns, as far as those are
    known. -1 in a shape stands for the rows of a batch."""
    _check_shapes("Feature", "model inputs", metadata, feature_columns, input_shapes)
    _check_shapes("Label", "label shapes", metadata, label_columns, label_shapes)
    if label_shapes is None:
        _check_shapes("Label", "model outputs", metadata, label_columns, output_shapes)


def _check_shapes(
    kind: str, what: str, metadata: Metadata, columns: Sequence[str], shapes: Optional[Sequence[Sequence[int]]]
) -> None:
    if shapes is None:
        return
    if len(columns) != len(shapes):
        raise ValueError(f"{kind} column count {len(columns)} must equal {what} count {len(shapes)}")
    for place, (name, shape) in enumerate(zip(columns, shapes)):
        values, size = metadata[name]["shape"], abs(int(numpy.prod(shape)))
        if values is not None and values != size:
            raise ValueError(
                f"{kind} column '{name}' with size {values} must equal that of the {what} at index {place} with size {size}"
            )


def to_list(var: Any, length: int) -> Any:
    """A list of `length` items: `var`, or the one item that it has or is, repeated. None stays None."""
    if var is None:
        return None
    items = var if isinstance(var, list) else [var]
    if len(items) == 1:
        return items * length
    if len(items) != length:
        raise ValueError(f"List {var} must be length {length} (found: {len(items)})")
    return items


def get_spark_df_output_schema(
    input_df_schema: StructType, label_cols: Sequence[str], output_cols: Sequence[str], metadata: Metadata
) -> StructType:
    """The schema of a DataFrame with further columns of what a model says, of the labels' types. Raises ValueError for names that
    are taken, or not one for each label."""
    if len(label_cols) != len(output_cols):
        raise ValueError(f"there are {len(label_cols)} label columns and {len(output_cols)} output columns")
    taken = [name for name in output_cols if name in input_df_schema.names]
    if taken:
        raise ValueError(f"Output col '{taken[0]}' exists in original df schema: {', '.join(input_df_schema.names)}")
    outputs = [StructField(output, _output_type(metadata[label])) for label, output in zip(label_cols, output_cols)]
    return StructType([*input_df_schema.fields, *outputs])


def _output_type(metadata: dict[str, Any]) -> Any:
    kind = output_type(metadata["spark_data_type"])
    return VectorUDT() if kind in (DenseVector, SparseVector, ArrayType) else kind()
