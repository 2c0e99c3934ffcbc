"""The common base of the estimators of all frameworks."""

import time
import uuid
from typing import Any, Optional

from pyspark.ml import Estimator, Model

from horovod.spark.common import util
from horovod.spark.common._arrays import array_types
from horovod.spark.common._direct import NoStore, RowsBackend, rows_for_tasks
from horovod.spark.common.backend import Backend, SparkBackend
from horovod.spark.common.cache import DataProperties
from horovod.spark.common.params import EstimatorParams, ModelParams

_SHUFFLED_BYTES = 256 << 20  # at most, in each process


def shuffle_size(given: Optional[int], properties: DataProperties, processes: int) -> int:
    """Returns how many rows are shuffled with one another.

    Args:
      given: the number that was requested; None: as many as a process has, up to 256 MiB.
      properties: the properties of the data.
      processes: the number of processes.

    Raises:
      ValueError: `given` is negative.
    """
    if given is not None:
        if given < 0:
            raise ValueError(f"shuffle_buffer_size is {given}: it cannot be negative; 0 is without shuffling")
        return given
    of_a_process = -(-properties.train_rows // processes)
    return max(1, min(of_a_process, int(_SHUFFLED_BYTES / properties.avg_row_size)))


class HorovodEstimator(Estimator, EstimatorParams):  # type: ignore[misc]  # pyspark has no types here
    """Trains a model on the rows of a DataFrame, in several processes. A subclass defines `_fit_on_prepared_data`."""

    def fit(self, df: Any, params: Optional[dict[Any, Any]] = None) -> Any:
        """Trains on the columns of a DataFrame, which are first written to the store, if there is one.

        Args:
          df: the DataFrame.
          params: parameters with other values in this call, such as {estimator.epochs: 3}.

        Returns:
          The trained model.

        Raises:
          ValueError: a parameter or a column is invalid.
          RuntimeError: the training fails.
        """
        return super().fit(df, params)

    def fit_on_parquet(self, params: Optional[dict[Any, Any]] = None, dataset_idx: Optional[int] = None) -> Any:
        """Trains on Parquet files that are in the store already, at ``store.get_train_data_path(dataset_idx)`` and, with `validation`,
        ``store.get_val_data_path(dataset_idx)``.

        Args:
          params: parameters with other values in this call, such as {estimator.epochs: 3}.
          dataset_idx: the number of the data set; None: data that the script has put there.

        Returns:
          The trained model.
        """
        estimator = self.copy(params) if params else self
        return estimator._fit_on_parquet(dataset_idx)

    def _fit_on_parquet(self, dataset_idx: Optional[int]) -> Any:
        backend = self._get_or_create_backend()
        properties = util.get_simple_meta_from_parquet(
            self._needed_store(),
            self.getLabelCols(),
            self.getFeatureCols(),
            self.getSampleWeightCol(),
            dataset_idx,
            self.getValidation(),
            only_numbers=self._gets_columns_as_they_are(),
        )
        return self._fit_on_prepared_data(backend, properties, dataset_idx)

    def _fit(self, df: Any) -> Any:
        backend = self._get_or_create_backend()
        features = self.getFeatureCols()
        if features is None:
            raise ValueError("Parameter feature_cols is required: the columns that the model gets")
        columns = util.columns_of(df, self.getLabelCols(), features, self.getSampleWeightCol())
        if self._gets_columns_as_they_are():
            array_types(df.schema, columns)  # refuses others before anything is written or started
        if self.getStore() is None:
            return self._fit_without_store(backend, df, features)
        with util.prepare_data(
            backend.num_processes(),
            self.getStore(),
            df,
            self.getLabelCols(),
            features,
            self.getValidation(),
            self.getSampleWeightCol(),
            self.getCompressSparseCols(),
            self.getPartitionsPerProcess(),
            self.getVerbose(),
        ) as dataset_idx:
            properties = util.get_dataset_properties(dataset_idx)
            self._check_metadata_compatibility(properties.metadata)
            return self._fit_on_prepared_data(backend, properties, dataset_idx)

    def _fit_without_store(self, backend: Backend, df: Any, features: list[str]) -> Any:
        if self.getDataModule() is not None:
            raise ValueError("Parameter data_module reads from a store: give a store, or leave it out")
        with rows_for_tasks(
            backend.num_processes(),
            df,
            self.getLabelCols(),
            features,
            self.getValidation(),
            self.getSampleWeightCol(),
            self.getCompressSparseCols(),
            self.getRandomSeed(),
        ) as (rows, properties):
            self._check_metadata_compatibility(properties.metadata)
            return self._fit_on_prepared_data(RowsBackend(backend, rows), properties, None)

    def _gets_columns_as_they_are(self) -> bool:
        return self.getTransformationFn() is None and self.getDataModule() is None

    def _check_metadata_compatibility(self, metadata: dict[str, Any]) -> None:
        """Raises ValueError for shapes that do not fit the columns."""

    def _fit_on_prepared_data(self, backend: Backend, properties: DataProperties, dataset_idx: Optional[int]) -> Any:
        """Trains on the data set with this number, and returns the model."""
        raise NotImplementedError

    def _needed_store(self) -> Any:
        if self.getStore() is None:
            raise ValueError("Parameter store is required: where the training data is, as Store.create('/tmp/run')")
        return self.getStore()

    def _store_of_run(self) -> Any:
        """Returns the store, or NoStore if there is none."""
        return self.getStore() or NoStore()

    def _get_or_create_backend(self) -> Any:
        backend = self.getBackend()
        if backend is None:
            return SparkBackend(self.getNumProc(), verbose=self.getVerbose())
        if self.getNumProc() is not None:
            raise ValueError("backend and num_proc are both given: num_proc belongs in the backend")
        return backend

    def _data_arguments(self, store: Any, properties: DataProperties, processes: int) -> dict[str, Any]:
        """Returns the arguments of a data module, without the number of the process."""
        weight = [self.getSampleWeightCol()] if self.getSampleWeightCol() else []
        return dict(
            train_dir=store.train_data_path,
            val_dir=store.val_data_path,
            num_train_epochs=self.getEpochs(),
            has_val=bool(properties.val_rows),
            train_batch_size=self.getBatchSize(),
            val_batch_size=self.getValBatchSize() or self.getBatchSize(),
            shuffle=self.getShuffle(),
            shuffle_size=shuffle_size(self.getShufflingBufferSize(), properties, processes),
            transform_fn=self.getTransformationFn(),
            transformation_edit_fields=self.getTransformationEditFields(),
            transformation_removed_fields=self.getTransformationRemovedFields(),
            inmemory_cache_all=self.getInMemoryCacheAll(),
            schema_fields=list(dict.fromkeys([*self.getFeatureCols(), *self.getLabelCols(), *weight])),
            storage_options=getattr(self._store_of_run(), "storage_options", None),
            steps_per_epoch_train=self.getTrainStepsPerEpoch(),
            steps_per_epoch_val=self.getValidationStepsPerEpoch(),
            random_seed=self.getRandomSeed(),
            verbose=self.getVerbose(),
            reader_pool_type=self.getReaderPoolType(),
            train_reader_worker_count=self.getTrainReaderNumWorker(),
            val_reader_worker_count=self.getValReaderNumWorker(),
        )

    def _run_id(self, framework: str) -> str:
        """The name that was given, or one that no other run has, and that sorts by the second in which it was made."""
        return self.getRunId() or f"{framework}_{int(time.time())}_{uuid.uuid4().hex[:8]}"

    def _checkpoint_path(self, run_id: str) -> Optional[str]:
        """Returns the path of the run's last checkpoint; None if there is none."""
        store = self._store_of_run()
        folder = store.get_checkpoint_path(run_id)
        path = f"{folder}/{store.get_checkpoint_filename()}"
        return path if folder is not None and store.exists(path) else None


class HorovodModel(Model, ModelParams):  # type: ignore[misc]
    """A trained model. A subclass has `_transform`."""

    def transform(self, df: Any, params: Optional[dict[Any, Any]] = None) -> Any:
        """Adds the model's predictions to a DataFrame.

        Args:
          df: the DataFrame.
          params: parameters with other values in this call.

        Returns:
          The DataFrame with a further column for each label: LABEL__output, or the name that `setOutputCols` has set.
        """
        return super().transform(df, params)
