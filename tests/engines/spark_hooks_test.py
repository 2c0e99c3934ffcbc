"""Public methods of estimators and models that a subclass overrides: the override is called."""

import os

import cloudpickle
import pytest
import torch
from torch.nn import functional

import horovod.spark.lightning as hvd_lightning
import horovod.spark.torch as hvd_torch
from horovod.spark.common import util
from horovod.spark.common.store import FilesystemStore
from in_this_process import InThisProcess

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras", reason="needs Keras")
pl = pytest.importorskip("pytorch_lightning", reason="needs Lightning on the path")
import horovod.spark.keras as hvd_keras  # noqa: E402

cloudpickle.register_pickle_by_value(__import__(__name__))  # the processes have no tests

# Of parameters that are accepted without effect, or that another one's value makes unnecessary.
UNUSED = {
    *("getContinuousCols", "getCategoricalCols", "getMpStartMethod", "getLoaderNumEpochs", "getDebugDataLoader"),
    "getTensorflowDatasetPrefetchBufferSize",
    *("getTrainAsyncDataLoaderQueueSize", "getValAsyncDataLoaderQueueSize"),
}
STORE = {
    *("to_remote", "get_train_data_path", "get_val_data_path", "get_test_data_path", "get_runs_path", "get_run_path"),
    *("get_checkpoint_path", "get_logs_path", "get_checkpoint_filename", "get_logs_subdir", "saving_runs"),
    *("exists", "get_parquet_dataset", "get_local_output_dir_fn", "sync_fn", "get_full_path", "get_localized_path"),
}
# Of models: what scripts ask for, and transform does not need.
FOR_SCRIPTS = {"getHistory", "getRunId", "getLoss", "getLossConstructors", "getOptimizer", "getFloatx", "getMetadata"}
# Of pyspark.ml.
OF_SPARK = {"getParam", "getOrDefault", "getOutputCol"}


def recording(base, names):
    """A subclass that overrides these methods, and the names of those that were called."""
    called = set()

    def overridden(name):
        def method(self, *args, **kwargs):
            called.add(name)
            return getattr(super(cls, self), name)(*args, **kwargs)

        return method

    cls = type(base.__name__, (base,), {name: overridden(name) for name in names})
    return cls, called


def hooks(cls):
    return {
        name for name in dir(cls) if name.startswith("get") and callable(getattr(cls, name)) and name not in OF_SPARK
    }


class Linear(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, x):
        return self.layer(x.float())

    def training_step(self, batch, batch_idx):
        return functional.mse_loss(self(batch["x"].reshape(-1, 1)), batch["y"].float().reshape(-1, 1))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def of_torch():
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return hvd_torch, dict(model=model, optimizer=optimizer, loss=functional.mse_loss, input_shapes=[[-1, 1]])


def of_lightning():
    return hvd_lightning, dict(model=Linear(), input_shapes=[[-1, 1]])


def of_keras():
    model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
    return hvd_keras, dict(model=model, optimizer=keras.optimizers.SGD(0.1), loss="mse")


# Of the estimator's base class, which this estimator has no use for: its optimizer and loss are the module's, or Keras's.
OF_OTHERS = {
    "of_lightning": {
        *("getMetrics", "getGradientCompression", "getBackwardPassesPerStep", "getTrainMinibatchFn", "getShuffle"),
        *("getLossWeights", "getOptimizer"),
    },
    "of_torch": {"getCallbacks"},
    "of_keras": set(),
}


@pytest.mark.parametrize("make", [of_torch, of_lightning, of_keras])
def test_each_method_of_an_estimator_and_its_model_is_called(local_spark, tmp_path, make):
    util.clear_training_cache()
    package, given = make()
    estimator_class = package.KerasEstimator if make is of_keras else package.TorchEstimator
    model_class = package.KerasModel if make is of_keras else package.TorchModel
    model, called_of_model = recording(model_class, hooks(model_class) | {"transform"})
    estimator, called = recording(estimator_class, hooks(estimator_class) | {"fit"})
    estimator.get_model_class = lambda self: called.add("get_model_class") or model
    store, called_of_store = recording(FilesystemStore, STORE)
    df = local_spark.createDataFrame([(1.0, 1.0, 1.0)], "x double, y double, w double")
    more = dict(store=store(str(tmp_path / "store")), feature_cols=["x"], label_cols=["y"], sample_weight_col="w")
    if make is of_lightning:
        more.pop("sample_weight_col")
    fitted = estimator(**given, **more, backend=InThisProcess(), verbose=0, epochs=1, batch_size=1)
    trained = fitted.fit(df)
    needless = UNUSED | OF_OTHERS[make.__name__]
    assert sorted((hooks(estimator_class) | {"fit", "get_model_class"}) - needless - called) == []
    assert type(trained) is model
    trained.transform(df).collect()
    assert sorted((hooks(model_class) | {"transform"}) - FOR_SCRIPTS - called_of_model) == []
    assert sorted(STORE - called_of_store) == []
