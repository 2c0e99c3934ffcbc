"""The estimator that trains Keras models, and the models that it returns."""

import functools
from collections.abc import Sequence
from typing import Any, Optional

import cloudpickle
import numpy
from pyspark import keyword_only

from horovod.spark.common import util
from horovod.spark.common._arrays import Types, array_types, arrays_of
from horovod.spark.common._outputs import Outputs, Predict
from horovod.spark.common.backend import Backend
from horovod.spark.common.cache import DataProperties
from horovod.spark.common.datamodule import ParquetDataModule, datamodule_from_name
from horovod.spark.common.estimator import HorovodEstimator, HorovodModel
from horovod.spark.common.params import Parameter, set_given, with_parameters
from horovod.spark.common.serialization import (
    HorovodParamsReader,
    HorovodParamsWriter,
    ParamsReadable,
    ParamsWritable,
)
from horovod.spark.keras._arrays import all_typed, dtypes
from horovod.spark.keras._files import Package, model_bytes, shapes
from horovod.spark.keras._training import Plan, checkpoint_name, train

_CUSTOM_OBJECTS = Parameter("custom_objects", "CustomObjects", "classes and functions of the model by name", {})


# Horovod's names, for subclasses elsewhere.
KerasEstimatorParamsWriter, KerasEstimatorParamsReader = HorovodParamsWriter, HorovodParamsReader


class KerasEstimatorParamsWritable(ParamsWritable):
    """Can be saved, with models as Keras saves them, and optimizers by their settings."""

    def _pickled(self, name: str, value: Any) -> bytes:
        values: Any = self
        if name == "model":
            return cloudpickle.dumps(("model", Package.of(value), values.getCustomObjects(), model_bytes(value)))  # type: ignore[no-any-return]
        if name == "optimizer" and not isinstance(value, str):
            package = Package.of(values.getModel())
            return cloudpickle.dumps(("optimizer", package, None, package.load().optimizers.serialize(value)))  # type: ignore[no-any-return]
        return super()._pickled(name, value)


class KerasEstimatorParamsReadable(ParamsReadable):
    """Can be loaded, from what :class:`KerasEstimatorParamsWritable` has saved."""

    @classmethod
    def _unpickled(cls, name: str, data: bytes) -> Any:
        value = super()._unpickled(name, data)
        if name == "model":
            return value[1].model(value[3], value[2])
        if name == "optimizer" and not isinstance(value, str):
            return value[1].load().optimizers.deserialize(value[3])
        return value


@with_parameters(
    _CUSTOM_OBJECTS,
    Parameter("checkpoint_callback", "CheckpointCallback", "the callback that saves checkpoints; default: the newest model"),
    Parameter("tensorflow_dataset_prefetch_buffer_size", "TensorflowDatasetPrefetchBufferSize", "accepted: a block is read ahead"),
    Parameter("backend_env", "BackendEnv", "further environment variables of the processes", {"LIBHDFS_OPTS": "-Xms2048m -Xmx2048m"}),
)  # fmt: skip
class KerasEstimator(HorovodEstimator, KerasEstimatorParamsReadable, KerasEstimatorParamsWritable):
    """Trains a Keras model on the rows of a DataFrame::

        estimator = KerasEstimator(num_proc=2, store=Store.create("hdfs:///jobs"), model=model,
            optimizer=keras.optimizers.SGD(0.1), loss="mse", feature_cols=["x"], label_cols=["y"], batch_size=32, epochs=3)
        predictions = estimator.fit(df).transform(df)

    The model belongs to the package `keras`, on any of its backends that Horovod supports, or to `tf_keras`. It gets the feature
    columns in the order of its inputs, in their shapes. Labels have the shapes of its outputs, if they have as many values, or
    `label_shapes`. The learning rate is multiplied by the number of processes; checkpoints and the returned model have the
    original rate. A schedule is used as it is.

    Args:
      custom_objects: the objects that Keras needs to load the model, {name: class or function}.
      optimizer: by default the one with which the model was compiled.
      loss, loss_weights, metrics: as for ``compile()``.
      callbacks: Keras callbacks; those for TensorBoard write to the store.
      checkpoint_callback: a callback such as ``hvd.callbacks.BestModelCheckpoint(monitor="val_loss")``; the returned model is the
        one that it has saved.
    """

    @keyword_only  # type: ignore[untyped-decorator]
    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        set_given(self, kwargs)

    def get_model_shapes(self) -> tuple[Optional[list[list[int]]], Optional[list[list[int]]]]:
        """Returns the shapes of the model's inputs, and those of its outputs, with -1 for the rows of a batch; None in place of a list
        that the model does not know yet.
        """
        model = self.getModel()
        return shapes(getattr(model, "inputs", None)), shapes(getattr(model, "outputs", None))

    def _check_metadata_compatibility(self, metadata: dict[str, Any]) -> None:
        inputs, outputs = self.get_model_shapes()
        util.check_shape_compatibility(
            metadata, self.getFeatureCols(), self.getLabelCols(), inputs, outputs, self.getLabelShapes()
        )

    def _fit_on_prepared_data(self, backend: Backend, properties: DataProperties, dataset_idx: Optional[int]) -> Any:
        self._check_params(properties.metadata)
        package = Package.of(self.getModel())
        run_id = self._run_id("keras")
        data = self._load_model_from_checkpoint(run_id) or self._compiled()
        plan = self._plan(package, backend, properties, run_id, dataset_idx)
        history, trained = backend.run(train, args=(plan, data), env=self.getBackendEnv())[0]
        return self.get_model_class()(
            history=history,
            model=package.model(trained, self.getCustomObjects()),
            feature_columns=self.getFeatureCols(),
            label_columns=self.getLabelCols(),
            custom_objects=self.getCustomObjects(),
            run_id=run_id,
            _metadata=properties.metadata,
            _floatx=package.floatx,
        )

    def _compiled(self) -> bytes:
        model, optimizer = self.getModel(), self.getOptimizer() or getattr(self.getModel(), "optimizer", None)
        if not self.getLoss():
            raise ValueError("loss is missing: the model can't be compiled without it")
        if not optimizer:
            raise ValueError("optimizer is missing: pass it to the estimator, or compile the model with one")
        model.compile(
            optimizer=optimizer,
            loss=self.getLoss(),
            loss_weights=self.getLossWeights(),
            metrics=self.getMetrics() or None,
        )
        return model_bytes(model)

    def _load_model_from_checkpoint(self, run_id: str) -> Optional[bytes]:
        store = self._store_of_run()
        folder = store.get_checkpoint_path(run_id)
        path = f"{folder}/{checkpoint_name(store.get_checkpoint_filename())}"
        if folder is None or not store.exists(path):
            return None
        if self.getVerbose():
            print(f"Resuming training from last checkpoint: {path}", flush=True)
        return store.read(path)  # type: ignore[no-any-return]

    def _plan(
        self, package: Package, backend: Backend, properties: DataProperties, run_id: str, dataset_idx: Optional[int]
    ) -> Plan:
        store = self._store_of_run().to_remote(run_id, dataset_idx)
        module = self.getDataModule() or ParquetDataModule
        if isinstance(module, str):
            module = datamodule_from_name(module)
        return Plan(
            package=package,
            custom_objects=self.getCustomObjects(),
            store=store,
            metadata=properties.metadata,
            data=functools.partial(module, **self._data_arguments(store, properties, backend.num_processes())),
            train_steps=self.getTrainStepsPerEpoch(),
            val_steps=self.getValidationStepsPerEpoch(),
            train_rows=properties.train_rows,
            val_rows=properties.val_rows,
            batch_size=self.getBatchSize(),
            val_batch_size=self.getValBatchSize() or self.getBatchSize(),
            epochs=self.getEpochs(),
            features=self.getFeatureCols(),
            labels=self.getLabelCols(),
            sample_weight=self.getSampleWeightCol(),
            label_shapes=self.getLabelShapes(),
            callbacks=list(self.getCallbacks() or []),
            checkpoint_callback=self.getCheckpointCallback(),
            compression=self.getGradientCompression(),
            backward_passes=self.getBackwardPassesPerStep(),
            use_gpu=self.getUseGpu(),
            seed=self.getRandomSeed(),
            verbose=self.getVerbose(),
            start_method=self.getMpStartMethod(),
        )

    def get_model_class(self) -> Any:
        """Returns the class of the trained models."""
        return KerasModel


@with_parameters(_CUSTOM_OBJECTS, Parameter("_floatx", "Floatx", "the type of Keras's floats"))
class KerasModel(HorovodModel, KerasEstimatorParamsReadable, KerasEstimatorParamsWritable):
    """A trained Keras model. ``getModel()`` is the model, ``getHistory()`` the history of fit(), {name: [value of each epoch]}.

    ``transform`` gives an output the type of its label: a number for a number, rounded for whole numbers. An output of several
    values is a vector.
    """

    @keyword_only  # type: ignore[untyped-decorator]
    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        set_given(self, kwargs)
        if kwargs.get("label_columns"):
            self.setOutputCols([f"{name}__output" for name in kwargs["label_columns"]])

    def _transform(self, df: Any) -> Any:
        model = self.getModel()
        features = self.getFeatureColumns()
        types = array_types(df.schema, features)
        load = functools.partial(
            _predictor, Package.of(model), model_bytes(model), self.getCustomObjects(), features, types
        )
        return Outputs(load, self.getLabelColumns(), self.getOutputCols(), self._get_metadata()).added_to(df)


def _predictor(
    package: Package, data: bytes, custom_objects: dict[str, Any], features: list[str], types: Types
) -> Predict:
    model = package.model(data, custom_objects)
    wanted = shapes(getattr(model, "inputs", None))
    wanted_types = dtypes(getattr(model, "inputs", None))

    def predict(rows: Sequence[Any]) -> list[numpy.ndarray]:
        inputs = all_typed(features, arrays_of(rows, features, types), wanted_types, package)
        if wanted:
            inputs = [values.reshape(len(rows), *shape[1:]) for values, shape in zip(inputs, wanted)]
        outputs = model.predict_on_batch(inputs[0] if len(inputs) == 1 else inputs)
        parts = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        return [numpy.asarray(part).reshape(len(rows), -1) for part in parts]

    return predict
