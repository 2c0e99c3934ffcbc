"""Trainings of estimators without a store: the rows of a DataFrame go to the tasks of the training directly."""

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable, Optional

import pyarrow
import pyarrow.compute
from pyspark import StorageLevel
from pyspark.sql import functions
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType

from horovod.spark.common import util
from horovod.spark.common._columns import is_vector, measured_metadata, metadata_of_schema, without_vectors
from horovod.spark.common._store_interface import RemoteStore, StoreInterface
from horovod.spark.common._task_rows import FLAG, TRAIN, VALIDATION
from horovod.spark.common.backend import Backend
from horovod.spark.common.cache import DataProperties


class NoStore(StoreInterface):
    """Replaces a store when the estimator has none: no files of a run are kept."""

    storage_options = None

    def get_checkpoint_path(self, run_id: str) -> Optional[str]:
        return None

    def get_checkpoint_filename(self) -> str:
        return "checkpoint"

    def to_remote(self, run_id: str, dataset_idx: Optional[int]) -> RemoteStore:
        return RemoteStore(
            train_data_path=TRAIN,
            val_data_path=VALIDATION,
            saving_runs=False,
            checkpoint_path=None,
            logs_path=None,
            checkpoint_filename=self.get_checkpoint_filename(),
            logs_subdir="logs",
            get_local_output_dir=tempfile.TemporaryDirectory,
        )


class RowsBackend(Backend):
    """A backend whose tasks get the partitions of a DataFrame.

    Raises: ValueError for a backend that can't do that.
    """

    def __init__(self, backend: Backend, df: Any) -> None:
        if not hasattr(backend, "run_on_rows"):
            raise ValueError(
                f"store=None needs the backend SparkBackend: {type(backend).__name__} has no run_on_rows; give a store"
            )
        self._backend: Any = backend
        self._df = df

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Optional[Mapping[str, Any]] = None,
        env: Optional[Mapping[str, str]] = None,
    ) -> list[Any]:
        return self._backend.run_on_rows(self._df, fn, args, kwargs, env)  # type: ignore[no-any-return]

    def num_processes(self) -> int:
        return self._backend.num_processes()  # type: ignore[no-any-return]


@contextlib.contextmanager
def rows_for_tasks(
    num_processes: int,
    df: Any,
    label_columns: Sequence[str],
    feature_columns: Sequence[str],
    validation: Any = None,
    sample_weight_col: Optional[str] = None,
    compress_sparse: bool = False,
    seed: Optional[int] = None,
) -> Iterator[tuple[Any, DataProperties]]:
    """A context manager that gives (a DataFrame with a partition for each process, what is known of its rows). Spark keeps the
    DataFrame, in memory or on its disks, as long as the context lasts.

    Args:
      validation, compress_sparse: as for :func:`horovod.spark.common.util.prepare_data`.
      seed: of the choice of rows for validation.

    Raises: ValueError for columns that are not there, or without rows for training, or for a validation.
    """
    util.check_validation(validation, df)
    columns = util.columns_of(df, label_columns, feature_columns, sample_weight_col)
    wanted = list(dict.fromkeys([*columns, validation])) if isinstance(validation, str) else columns
    df = _with_a_use(df.select(*[functions.col(f"`{name}`") for name in wanted]), validation)
    metadata = measured_metadata(df) if compress_sparse and any(map(is_vector, df.schema.fields)) else None
    flagged = without_vectors(df, metadata).withColumn(FLAG, _is_for_validation(df, validation, seed))
    rows = flagged.select(*[functions.col(f"`{name}`") for name in [*columns, FLAG]]).repartition(num_processes)
    rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        metadata = metadata or metadata_of_schema(to_arrow_schema(rows.schema), columns)
        train, of_validation, size = _measured(rows)
        for count, kind in ((train, "training"), (of_validation, "validation")):
            if count == 0 and (kind == "training" or validation):
                raise ValueError(f"there are no rows for {kind} in the DataFrame")
        yield rows, DataProperties(train, of_validation, metadata, size / (train + of_validation))
    finally:
        rows.unpersist()


def _with_a_use(df: Any, validation: Any) -> Any:
    """The rows for training or for validation. As with a store, a row whose column for validation is null or below 0 is for neither."""
    if not isinstance(validation, str):
        return df
    column = functions.col(f"`{validation}`")
    return df.filter(column.isNotNull() if isinstance(df.schema[validation].dataType, BooleanType) else column >= 0)


def _is_for_validation(df: Any, validation: Any, seed: Optional[int]) -> Any:
    if not validation:
        return functions.lit(False)
    if isinstance(validation, float):
        return functions.rand(seed) < validation
    column = functions.col(f"`{validation}`")
    return column if isinstance(df.schema[validation].dataType, BooleanType) else column > 0


def _measured(rows: Any) -> tuple[int, int, int]:
    """(rows for training, rows for validation, bytes of all)"""
    found = rows.mapInArrow(_measures, "train long, validation long, bytes long").groupBy().sum().first()
    train, validation, size = (value or 0 for value in found)
    return train, validation, size


def _measures(batches: Any) -> Iterator[pyarrow.RecordBatch]:
    """Returns the number of training and validation rows and the bytes of each batch."""
    names = ["train", "validation", "bytes"]
    for batch in batches:
        flagged = pyarrow.compute.sum(batch.column(batch.schema.names.index(FLAG))).as_py() or 0
        values = (batch.num_rows - flagged, flagged, batch.nbytes)
        yield pyarrow.RecordBatch.from_arrays([pyarrow.array([value], pyarrow.int64()) for value in values], names)
