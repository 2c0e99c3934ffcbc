"""The estimator that trains by PyTorch Lightning, and the models that it returns."""

import copy
import dataclasses
import io
import posixpath
import re
import warnings
from typing import Any, Optional

import cloudpickle
import torch
from pyspark import keyword_only
from pyspark.ml.param.shared import TypeConverters

from horovod.spark.common import util
from horovod.spark.common._arrays import array_types
from horovod.spark.common.backend import Backend
from horovod.spark.common.cache import DataProperties
from horovod.spark.common.datamodule import datamodule_from_name
from horovod.spark.common.params import Parameter, with_parameters
from horovod.spark.common.serialization import (
    HorovodParamsReader,
    HorovodParamsWriter,
    ParamsReadable,
    ParamsWritable,
)
from horovod.spark.lightning._plain_model import PlainModel
from horovod.spark.lightning._training import Plan, train
from horovod.spark.torch import estimator as of_torch
from horovod.spark.torch._predictor import Prediction

# Horovod's names, for subclasses elsewhere.
TorchEstimatorParamsWriter, TorchEstimatorParamsReader = HorovodParamsWriter, HorovodParamsReader
TorchEstimatorParamsWritable, TorchEstimatorParamsReadable = ParamsWritable, ParamsReadable

MIN_PL_VERSION = "2.1.0"
_PACKAGES = ("lightning.pytorch", "pytorch_lightning")
_NUMBER = re.compile(r"-v(\d+)\.ckpt$")
_BOOLEAN, _INT = TypeConverters.toBoolean, TypeConverters.toInt
_PART_OF_THE_MODULE = {
    "optimizer": "configure_optimizers",
    "loss": "training_step",
    "loss_weights": "training_step",
}


def _age(path: str) -> tuple[bool, int]:
    """Returns what sorts Lightning's checkpoints of a run, newest last. Lightning gives numbers to further files of one name, and
    another name to that of `save_last`.
    """
    number = _NUMBER.search(path)
    return posixpath.basename(path).startswith("last"), int(number[1]) if number else 0


@with_parameters(
    Parameter("num_gpus", "NumGPUs", "number of GPUs of a process: 1, or 0"),
    Parameter("logger", "Logger", "Lightning's logger; default: one for TensorBoard, or CSV files without it"),
    Parameter("log_every_n_steps", "LogEveryNSteps", "how many batches are between two lines of the log", 50, _INT),
    Parameter("loader_num_epochs", "LoaderNumEpochs", "accepted: data is given as often as it is asked for"),
    Parameter(
        "terminate_on_nan",
        "TerminateOnNan",
        "whether a loss that is not a number (NaN) ends the training",
        False,
        _BOOLEAN,
    ),
    Parameter("profiler", "Profiler", "Lightning's profiler"),
    Parameter("trainer_args", "TrainerArgs", "further arguments of Lightning's Trainer, which precede the others"),
    Parameter("debug_data_loader", "DebugDataLoader", "accepted, without effect", False, _BOOLEAN),
    Parameter("train_async_data_loader_queue_size", "TrainAsyncDataLoaderQueueSize", "accepted: a block is read ahead"),
    Parameter("val_async_data_loader_queue_size", "ValAsyncDataLoaderQueueSize", "accepted: a block is read ahead"),
)
class TorchEstimator(of_torch.TorchEstimator):
    """Trains a LightningModule on the rows of a DataFrame::

        estimator = TorchEstimator(num_proc=2, store=Store.create("hdfs:///jobs"), model=module, feature_cols=["x"],
            label_cols=["y"], input_shapes=[[-1, 2]], batch_size=32, epochs=3, validation=0.1)
        predictions = estimator.fit(df).transform(df)

    The steps of the module get batches {column: tensor}. Learning rates are used as they are. ``getHistory()`` of the model has
    the values that the module has logged last, {name: value}. With a `ModelCheckpoint` among the callbacks, the model is its best
    one. A run with a checkpoint continues from its weights.

    A model that is not a LightningModule, with `optimizer` and `loss`, is called with the columns by their names.
    """

    @keyword_only  # type: ignore[untyped-decorator]
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)

    def _check_params(self, metadata: dict[str, Any]) -> None:
        super()._check_params(metadata)
        if package_of(self.getModel()) is None:
            return
        for name, method in _PART_OF_THE_MODULE.items():
            if self.getOrDefault(getattr(self, name)):
                raise ValueError(f"{name} is not for a LightningModule, whose {method}() decides that: leave it out")

    def _fit_on_prepared_data(self, backend: Backend, properties: DataProperties, dataset_idx: Optional[int]) -> Any:
        self._check_params(properties.metadata)
        run_id = self._run_id("pytorch")
        model = copy.deepcopy(self.getModel())
        checkpoint = self._load_checkpoint(run_id)
        if checkpoint is not None:
            model.load_state_dict(checkpoint["state_dict"])
        plan = self._lightning_plan(model, backend, properties, run_id, dataset_idx)
        results = backend.run(train, args=(plan, cloudpickle.dumps(self._trainable(model))), env={})
        history, state = results[0]
        model.load_state_dict(torch.load(io.BytesIO(state), map_location="cpu", weights_only=True))
        return self.get_model_class()(
            **self._get_model_kwargs(model.eval(), history, None, run_id, properties.metadata)
        )

    def _trainable(self, model: Any) -> Any:
        """The LightningModule, or what one is made of."""
        if package_of(model) is not None:
            return model
        optimizer = self._own_optimizer()
        if self.getLossWeights():
            warnings.warn("loss_weights: write a LightningModule instead", DeprecationWarning, stacklevel=2)
        labels = self.getLabelCols()
        return PlainModel(
            model,
            of_torch.bound_optimizer(model, copy.deepcopy(optimizer)),
            util.to_list(self.getLoss(), len(labels)) or [make(model=model) for make in self._constructors(labels)],
            self._loss_weights_of(labels),
            self.getFeatureCols(),
            labels,
            self.getSampleWeightCol(),
        )

    def _constructors(self, labels: list[str]) -> list[Any]:
        return util.to_list(self.getLossConstructors(), len(labels)) or []

    def _load_checkpoint(self, run_id: str) -> Any:
        """Returns the newest Lightning checkpoint of the run, or None. It is unpickled, as by Lightning."""
        store = self._store_of_run()
        folder = store.get_checkpoint_path(run_id)
        paths = store.get_checkpoints(run_id) if folder is not None and store.exists(folder) else []
        if not paths:
            return None
        newest = max(paths, key=_age)
        if self.getVerbose():
            print(f"Resuming training from last checkpoint: {newest}", flush=True)
        found = torch.load(io.BytesIO(store.read(newest)), map_location="cpu", weights_only=False)
        weights = found["state_dict"]
        if package_of(self.getModel()) is None:
            weights = {name.removeprefix("model."): value for name, value in weights.items()}
        return {"state_dict": weights}

    def _lightning_plan(
        self, model: Any, backend: Backend, properties: DataProperties, run_id: str, dataset_idx: Optional[int]
    ) -> Plan:
        store = self._store_of_run().to_remote(run_id, dataset_idx)
        return Plan(
            package=package_of(model) or _installed_package(),
            store=store,
            metadata=properties.metadata,
            data_module=self._lightning_module_class(),
            data_arguments=self._lightning_arguments(store, properties, backend.num_processes()),
            train_rows=properties.train_rows,
            val_rows=properties.val_rows,
            trainer={
                "max_epochs": self.getEpochs(),
                "logger": self.getLogger(),
                "log_every_n_steps": self.getLogEveryNSteps(),
                "profiler": self.getProfiler(),
                **(self.getTrainerArgs() or {}),
            },
            callbacks=list(self.getCallbacks() or []),
            terminate_on_nan=self.getTerminateOnNan(),
            use_gpu=self.getUseGpu() and self.getNumGPUs() != 0,
            seed=self.getRandomSeed(),
            verbose=self.getVerbose(),
            start_method=self.getMpStartMethod(),
        )

    def _lightning_arguments(self, store: Any, properties: DataProperties, processes: int) -> dict[str, Any]:
        """The arguments of a data module, also by the names that Horovod has for modules of Lightning alone."""
        arguments = self._data_arguments(store, properties, processes)
        return dict(
            arguments,
            transformation=arguments["transform_fn"],
            seed=arguments["random_seed"],
            reader_worker_count=arguments["train_reader_worker_count"],
            num_reader_epochs=self.getLoaderNumEpochs(),
            debug_data_loader=self.getDebugDataLoader(),
            train_async_data_loader_queue_size=self.getTrainAsyncDataLoaderQueueSize(),
            val_async_data_loader_queue_size=self.getValAsyncDataLoaderQueueSize(),
        )

    def _lightning_module_class(self) -> Any:
        module = self.getDataModule()
        return datamodule_from_name(module) if isinstance(module, str) else module

    def get_model_class(self) -> Any:
        """Returns the class of the trained models."""
        return TorchModel


def package_of(model: Any) -> Optional[str]:
    """The package of Lightning whose LightningModule the model is; None for another model."""
    names = {base.__module__ for base in type(model).__mro__ if base.__name__ == "LightningModule"}
    return next((package for package in _PACKAGES if any(name.startswith(package) for name in names)), None)


def _installed_package() -> str:
    """Raises ImportError if no package is installed, or both are installed and neither was imported."""
    from horovod.lightning import _packages  # looks for it

    return _packages.in_use()[0]


class TorchModel(of_torch.TorchModel):
    """A trained model; see :class:`horovod.spark.torch.TorchModel`. ``getHistory()`` has the values that were logged last.

    A LightningModule gets whole numbers and booleans in their own types, and floats in the type of its parameters. Another model
    gets floats.
    """

    @keyword_only  # type: ignore[untyped-decorator]
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)

    def get_prediction_fn(self) -> Any:
        """Returns what ``transform`` predicts with: a function of (model, row) that returns the output of the model for a row of the
        DataFrame, a tensor, or a list of them. A subclass may return another one, which is called in Spark's tasks, once for each
        row.
        """
        return Prediction(self.getFeatureColumns(), self.getInputShapes(), package_of(self.getModel()) is None)

    def _prediction_fn(self, df: Any) -> Any:
        function = self.get_prediction_fn()
        if not isinstance(function, Prediction):
            return function
        return dataclasses.replace(function, types=array_types(df.schema, function.features))
