"""The estimator that trains PyTorch models, and the models that it returns."""

import copy
import functools
import io
from collections.abc import Sequence
from typing import Any, Callable, Optional

import cloudpickle
import torch
from pyspark import keyword_only

from horovod.spark.common import util
from horovod.spark.common._arrays import array_types
from horovod.spark.common._outputs import Outputs
from horovod.spark.common.backend import Backend
from horovod.spark.common.cache import DataProperties
from horovod.spark.common.datamodule import datamodule_from_name
from horovod.spark.common.estimator import HorovodEstimator, HorovodModel
from horovod.spark.common.params import Parameter, set_given, with_parameters
from horovod.spark.common.serialization import (
    HorovodParamsReader,
    HorovodParamsWriter,
    ParamsReadable,
    ParamsWritable,
)
from horovod.spark.torch._predictor import Prediction, Predictor
from horovod.spark.torch._training import Plan, State, train
from horovod.spark.torch.datamodule import PetastormDataModule

# Horovod's names, for subclasses elsewhere.
TorchEstimatorParamsWriter, TorchEstimatorParamsReader = HorovodParamsWriter, HorovodParamsReader
TorchEstimatorParamsWritable, TorchEstimatorParamsReadable = ParamsWritable, ParamsReadable


class _HasOptimizer:
    """Adds `getOptimizer` to a class with the parameters `model` and `optimizer`."""

    def getOptimizer(self) -> Optional[torch.optim.Optimizer]:
        """Returns the optimizer, bound to the parameters of the model, if there is one."""
        values: Any = self
        optimizer, model = values.getOrDefault(values.optimizer), values.getModel()
        return optimizer if optimizer is None or model is None else bound_optimizer(model, optimizer)


def bound_optimizer(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """Returns the optimizer or, if it does not train the model's own parameters, because one of the two was copied or loaded, a new
    one with its state for these parameters.
    """
    own = set(map(id, model.parameters()))
    if all(id(parameter) in own for group in optimizer.param_groups for parameter in group["params"]):
        return optimizer
    kind: Callable[..., torch.optim.Optimizer] = type(optimizer)
    new = kind(model.parameters(), lr=1)  # what all losses of torch take
    new.load_state_dict(optimizer.state_dict())
    return new


@with_parameters(
    Parameter("input_shapes", "InputShapes", "shape of each feature column's batch, -1 for its rows"),
    Parameter("loss_constructors", "LossConstructors", "functions that make the losses, in each process"),
    Parameter("train_minibatch_fn", "TrainMinibatchFn", "function that trains on a batch in place of the usual steps"),
)
class TorchEstimator(_HasOptimizer, HorovodEstimator, ParamsReadable, ParamsWritable):
    """Trains a PyTorch model on the rows of a DataFrame::

        estimator = TorchEstimator(num_proc=2, store=Store.create("hdfs:///jobs"), model=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1), loss=torch.nn.functional.mse_loss,
            feature_cols=["x"], label_cols=["y"], input_shapes=[[-1, 2]], batch_size=32, epochs=3)
        predictions = estimator.fit(df).transform(df)

    The model gets a tensor of floats for each feature column, in the shapes of `input_shapes`, and returns one output for each
    label column. The learning rate is multiplied by the number of processes; checkpoints and the returned optimizer have the
    original rate. The parameters are those of :class:`EstimatorParams`, and these:

    Args:
      loss: a function of (output, label), or one for each label; with `sample_weight_col` also of `reduction`.
      loss_constructors: instead of `loss`, functions that are called with ``model=...`` in each process and return one.
      metrics: lists of functions of (output, label): a single one is for all labels, or there is one for each.
      train_minibatch_fn: called with (model, optimizer, transform_outputs, loss_fn, inputs, labels, sample_weights); returns
        (outputs, loss). If it takes two arguments more, they are `backward_passes_per_step` and the number of the batch in the
        epoch; it then leaves the epoch's last step to the estimator, as in Horovod 0.28.
      callbacks: accepted for compatibility; not used.
    """

    @keyword_only  # type: ignore[untyped-decorator]
    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        if kwargs.get("loss") is not None and kwargs.get("loss_constructors") is not None:
            raise ValueError("loss and loss_constructors are both given: give one of the two")
        set_given(self, kwargs)

    def _check_metadata_compatibility(self, metadata: dict[str, Any]) -> None:
        util.check_shape_compatibility(
            metadata,
            self.getFeatureCols(),
            self.getLabelCols(),
            input_shapes=self.getInputShapes(),
            label_shapes=self.getLabelShapes(),
        )

    def _fit_on_prepared_data(self, backend: Backend, properties: DataProperties, dataset_idx: Optional[int]) -> Any:
        self._check_params(properties.metadata)
        run_id = self._run_id("pytorch")
        model, optimizer = copy.deepcopy((self.getModel(), self._own_optimizer()))
        checkpoint = self._load_checkpoint(run_id)
        if checkpoint is not None:
            _restore(model, optimizer, checkpoint)
        plan = self._plan(backend, properties, run_id, dataset_idx)
        results = backend.run(train, args=(plan, cloudpickle.dumps((model, optimizer))), env={})
        history, state = results[0]
        _restore(model, optimizer, torch.load(io.BytesIO(state), map_location="cpu", weights_only=True))
        return self.get_model_class()(
            **self._get_model_kwargs(model.eval(), history, optimizer, run_id, properties.metadata)
        )

    def _own_optimizer(self) -> torch.optim.Optimizer:
        optimizer = self.getOptimizer()
        if optimizer is None:
            raise ValueError("Parameter optimizer is required")
        if self.getLoss() is None and not self.getLossConstructors():
            raise ValueError("Parameter loss or loss_constructors is required")
        return optimizer

    def _load_checkpoint(self, run_id: str) -> Optional[State]:
        path = self._checkpoint_path(run_id)
        if path is None:
            return None
        if self.getVerbose():
            print(f"Resuming training from last checkpoint: {path}", flush=True)
        data = io.BytesIO(self.getStore().read(path))
        return torch.load(data, map_location="cpu", weights_only=True)  # type: ignore[no-any-return]

    def _plan(self, backend: Backend, properties: DataProperties, run_id: str, dataset_idx: Optional[int]) -> Plan:
        labels = self.getLabelCols()
        store = self._store_of_run().to_remote(run_id, dataset_idx)
        return Plan(
            store=store,
            metadata=properties.metadata,
            data=self._data_module(store, properties, backend.num_processes()),
            train_steps=self.getTrainStepsPerEpoch(),
            val_steps=self.getValidationStepsPerEpoch(),
            train_rows=properties.train_rows,
            val_rows=properties.val_rows,
            batch_size=self.getBatchSize(),
            val_batch_size=self.getValBatchSize() or self.getBatchSize(),
            epochs=self.getEpochs(),
            features=self.getFeatureCols(),
            labels=labels,
            sample_weight=self.getSampleWeightCol(),
            input_shapes=self.getInputShapes(),
            label_shapes=self.getLabelShapes(),
            loss_fns=util.to_list(self.getLoss(), len(labels)),
            loss_constructors=util.to_list(self.getLossConstructors(), len(labels)),
            loss_weights=self._loss_weights_of(labels),
            metrics=[group if isinstance(group, list) else [group] for group in self.getMetrics()],
            train_minibatch=self.getTrainMinibatchFn(),
            compression=self.getGradientCompression(),
            backward_passes=self.getBackwardPassesPerStep(),
            use_gpu=self.getUseGpu(),
            seed=self.getRandomSeed(),
            verbose=self.getVerbose(),
            start_method=self.getMpStartMethod(),
        )

    def _loss_weights_of(self, labels: Sequence[str]) -> list[float]:
        weights: Optional[list[float]] = self.getLossWeights()
        if not weights:
            return [1 / len(labels)] * len(labels)
        if len(weights) != len(labels):
            raise ValueError(f"loss_weights has {len(weights)} values for {len(labels)} label_cols: give one for each")
        return weights

    def _data_module(self, store: Any, properties: DataProperties, processes: int) -> Any:
        module = self.getDataModule() or PetastormDataModule
        if isinstance(module, str):
            module = datamodule_from_name(module)
        return functools.partial(module, **self._data_arguments(store, properties, processes))

    def get_model_class(self) -> Any:
        """Returns the class of the trained models."""
        return TorchModel

    def _get_model_kwargs(self, model: Any, history: Any, optimizer: Any, run_id: str, metadata: Any) -> dict[str, Any]:
        return dict(
            history=history,
            model=model,
            optimizer=optimizer,
            feature_columns=self.getFeatureCols(),
            input_shapes=self.getInputShapes(),
            label_columns=self.getLabelCols(),
            run_id=run_id,
            _metadata=metadata,
            loss=self.getLoss(),
            loss_constructors=self.getLossConstructors(),
        )


def _restore(model: torch.nn.Module, optimizer: torch.optim.Optimizer, state: State) -> None:
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])


@with_parameters(
    Parameter("optimizer", "Optimizer", "the optimizer at the end of the training"),
    Parameter("input_shapes", "InputShapes", "shape of each feature column's batch, -1 for its rows"),
    Parameter("loss", "Loss", "loss function, or one for each label"),
    Parameter("loss_constructors", "LossConstructors", "functions that make the losses"),
)
class TorchModel(_HasOptimizer, HorovodModel, ParamsReadable, ParamsWritable):
    """A trained PyTorch model. ``getModel()`` is the module, ``getHistory()`` the metrics of each epoch,
    {"epoch": 0, "train": {"loss": ..., "all_metrics": [...]}, "validation": {...}}.

    ``transform`` gives an output the type of its label: a number for a number, rounded for whole numbers. An output of several
    values is a vector.
    """

    @keyword_only  # type: ignore[untyped-decorator]
    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        set_given(self, kwargs)
        if kwargs.get("label_columns"):
            self.setOutputCols([f"{name}__output" for name in kwargs["label_columns"]])

    def _prediction_fn(self, df: Any) -> Any:
        """The function that predicts for a row of the DataFrame; see :class:`Predictor`."""
        features = self.getFeatureColumns()
        return Prediction(features, self.getInputShapes(), True, array_types(df.schema, features))

    def _transform(self, df: Any) -> Any:
        predictor = Predictor(copy.deepcopy(self.getModel()).cpu(), self._prediction_fn(df))
        outputs = Outputs(
            predictor.loaded, self.getLabelColumns(), self.getOutputCols(), self._get_metadata(), predictor.rows_at_once
        )
        return outputs.added_to(df)
