"""The estimator that trains PyTorch models: fits in a local session, checkpoints, models, and saved files."""

import multiprocessing
import os
import sys
from types import SimpleNamespace

import cloudpickle
import numpy
import pytest
import torch
from pyspark.ml import Pipeline
from pyspark.ml.linalg import DenseVector, VectorUDT
from pyspark.sql.types import FloatType, IntegerType
from torch.nn import functional

import horovod.spark.torch as hvd_spark
from horovod.spark.common import util
from horovod.spark.common._columns import measured_metadata
from horovod.spark.common.datamodule import DataModule, datamodule_from_name
from horovod.spark.common.estimator import shuffle_size
from horovod.spark.common.store import Store
from horovod.spark.torch._losses import Means, calculate_loss
from horovod.spark.torch._summary import SummaryLog
from horovod.spark.torch._training import with_scaled_rate
from horovod.spark.torch.datamodule import NVTabularDataModule, PetastormDataModule
from in_this_process import InThisProcess
from spark_tables import table, vectors, xor


class Xor(torch.nn.Module):
    def __init__(self, outputs=1, inputs=2):
        super().__init__()
        self.first = torch.nn.Linear(inputs, 8)
        self.second = torch.nn.Linear(8, outputs)

    def forward(self, features):
        return torch.sigmoid(self.second(torch.tanh(self.first(features))))


cloudpickle.register_pickle_by_value(__import__(__name__))  # the processes have no tests


@pytest.fixture
def store(tmp_path):
    util.clear_training_cache()
    return Store.create(str(tmp_path / "store"))


def estimator(in_store, model=None, **more):
    model = model or Xor()
    given = dict(
        backend=InThisProcess(),
        store=in_store,
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        loss=functional.binary_cross_entropy,
        input_shapes=[[-1, 2]],
        feature_cols=["features"],
        label_cols=["y"],
        batch_size=2,
        epochs=2,
        random_seed=1,
        verbose=0,
        partitions_per_process=1,
    )
    return hvd_spark.TorchEstimator(**{**given, **more})


def test_two_processes_learn_xor(local_spark, store):
    torch.manual_seed(3)
    model = Xor()
    trained = (
        estimator(
            store,
            model,
            backend=None,
            num_proc=2,
            optimizer=torch.optim.Adam(model.parameters(), lr=0.03),
            batch_size=4,
            epochs=60,
            validation="x1",
            metrics=[[functional.l1_loss], [functional.mse_loss]],
            feature_cols=["features"],
        )
        .setValidation(None)
        .fit(xor(local_spark, 8))
    )
    history = trained.getHistory()
    assert [entry["epoch"] for entry in history] == list(range(60)) and "validation" not in history[0]
    assert history[-1]["train"]["loss"] < 0.3 < history[0]["train"]["loss"]
    assert [list(group) for group in history[0]["train"]["all_metrics"]] == [["group_0_y"], ["group_1_y"]]
    said = {(row.x1, row.x2): row.y__output for row in trained.transform(xor(local_spark)).collect()}
    assert {corner: round(value) for corner, value in said.items()} == {(0, 0): 0, (0, 1): 1, (1, 0): 1, (1, 1): 0}
    assert trained.getOptimizer().param_groups[0]["lr"] == pytest.approx(0.03)
    assert store.exists(f"{store.get_checkpoint_path(trained.getRunId())}/checkpoint")


def test_each_row_weighs_what_its_column_says(local_spark, store):
    rows = [[1.0, 0.0, 1.0], [1.0, 10.0, 0.0]]
    df = table(local_spark, rows, x="float", y="float", weight="float")
    model = torch.nn.Linear(1, 1)
    trained = estimator(
        store,
        model,
        loss=functional.mse_loss,
        feature_cols=["x"],
        input_shapes=[[-1, 1]],
        sample_weight_col="weight",
        epochs=80,
    ).fit(df)
    assert trained.getModel()(torch.ones(1, 1)).item() == pytest.approx(0, abs=0.05)


def test_batches_of_a_fixed_shape(local_spark, store):
    """The shape may lack -1: it is then that of each row."""
    trained = estimator(store, input_shapes=[[2]], batch_size=1, epochs=1).fit(xor(local_spark))
    assert [row.y__output for row in trained.transform(xor(local_spark)).collect()]
    trained = estimator(store, input_shapes=[[3, 2]], batch_size=3, epochs=1).fit(xor(local_spark))
    assert trained.getHistory()[0]["train"]["loss"] > 0


def test_too_few_rows_of_validation_for_a_batch_of_a_fixed_shape_are_refused_before_the_training(local_spark, store):
    def train(*_):
        raise AssertionError("it has begun")

    rows = [[float(n), 0.0, int(n == 3)] for n in range(4)]
    df = table(local_spark, rows, x="float", y="float", val="int")
    refused = estimator(
        store, Xor(inputs=1), feature_cols=["x"], input_shapes=[[2, 1]], validation="val", train_minibatch_fn=train
    )
    with pytest.raises(ValueError, match="the 1 rows for validation of a process make no batch of val_batch_size=2"):
        refused.fit(df)


def test_a_run_with_a_checkpoint_continues(local_spark, store, capfd):
    df = xor(local_spark)
    first = estimator(store, run_id="run1", epochs=3, verbose=1)
    assert not store.exists(store.get_checkpoint_path("run1"))
    trained = first.fit(df)
    assert "Resuming" not in capfd.readouterr().out and trained.getRunId() == "run1"
    weights = trained.getModel().state_dict()
    again = first.fit(df, {first.epochs: 1, first.train_steps_per_epoch: 1, first.optimizer: still(first)})
    assert "Resuming training from last checkpoint" in capfd.readouterr().out
    assert not all(torch.equal(weights[name], value) for name, value in first.getModel().state_dict().items())
    assert set(again.getModel().state_dict()) == set(weights)
    checkpoint = torch.load(store.get_localized_path(store.get_checkpoint_path("run1")) + "/checkpoint")
    assert checkpoint["optimizer"]["param_groups"][0]["lr"] == pytest.approx(0.1)
    assert all(torch.equal(checkpoint["model"][name], value) for name, value in again.getModel().state_dict().items())


def still(which):
    return torch.optim.SGD(which.getModel().parameters(), lr=0.5)  # the checkpoint's rate is what counts


def test_parquet_files_that_are_there_already(local_spark, store):
    df = xor(local_spark, 2)
    with util.prepare_data(1, store, df, ["y"], ["features"], partitions_per_process=1) as number:
        for in_memory in (False, True):
            fitted = estimator(store, batch_size=1, inmemory_cache_all=in_memory, loss=None).setLoss(torch.nn.BCELoss())
            trained = fitted.fit_on_parquet({fitted.epochs: 3}, dataset_idx=number)
            assert len(trained.getHistory()) == 3
            assert trained.transform(df).count() == 8


def test_validation_and_steps(local_spark, store):
    def minibatch(model, optimizer, transform_outputs, loss_fn, inputs, labels, sample_weights):
        assert sample_weights is None and [len(values) for values in inputs + labels] == [3, 3]
        optimizer.zero_grad()
        outputs, labels = transform_outputs(model(*inputs), labels)
        loss = loss_fn(outputs, labels, sample_weights)
        loss.backward()
        optimizer.step()
        print("one step", flush=True)
        return outputs, loss

    df = table(local_spark, [[float(n), 0.5, n % 2] for n in range(12)], x="float", y="float", val="int")
    shapes = dict(feature_cols=["x"], input_shapes=[[-1, 1]], validation="val")
    fitted = estimator(
        store, Xor(inputs=1), train_minibatch_fn=minibatch, train_steps_per_epoch=2, batch_size=3, **shapes
    )
    history = fitted.fit(df).getHistory()
    assert [sorted(entry) for entry in history] == [["epoch", "train", "validation"]] * 2
    with_constructor = estimator(
        store, Xor(inputs=1), loss=None, loss_constructors=lambda **_: torch.nn.MSELoss(), epochs=1, **shapes
    )
    with_constructor.setValBatchSize(4).setValidationStepsPerEpoch(3).setBackwardPassesPerStep(2)
    assert 0 <= with_constructor.fit(df).getHistory()[0]["validation"]["loss"] < 0.3


def weights_after(spark, in_store, **more):
    """The weights after training with eight equal rows, whose order does not matter."""
    torch.manual_seed(5)
    df = table(spark, [[0.5, 1.0]] * 8, x="float", y="float")
    fitted = estimator(in_store, Xor(inputs=1), feature_cols=["x"], input_shapes=[[-1, 1]], **more)
    return torch.nn.utils.parameters_to_vector(fitted.fit(df).getModel().parameters())


def test_gradients_of_several_passes_are_averaged(local_spark, store):
    expected = weights_after(local_spark, store, batch_size=4)
    assert torch.allclose(weights_after(local_spark, store, batch_size=2, backward_passes_per_step=2), expected)


def test_a_function_for_batches_may_know_the_passes(local_spark, store):
    """Horovod's: it makes the step of a batch when it is called for the next one."""

    def minibatch(model, optimizer, transform_outputs, loss_fn, inputs, labels, sample_weights, passes, batch):
        if batch % passes == 0:
            if batch > 0:
                optimizer.step()
            optimizer.zero_grad()
        outputs, labels = transform_outputs(model(*inputs), labels)
        loss = loss_fn(outputs, labels, sample_weights)
        (loss / passes).backward()
        return outputs, loss

    expected = weights_after(local_spark, store, batch_size=4)
    own = weights_after(local_spark, store, batch_size=2, backward_passes_per_step=2, train_minibatch_fn=minibatch)
    assert torch.allclose(own, expected)


def test_rows_can_be_changed_before_they_are_used(local_spark, store):
    def changed(row):
        return {"features": row["features"] * 2, "y": row["y"], "extra": 1}

    class Sees(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def forward(self, features):
            assert features.max().item() in (0, 2)
            return torch.sigmoid(features.sum(1) * self.weight)

    more = dict(
        transformation_fn=changed,
        transformation_edit_fields=[("y", numpy.float64, (), False)],
        transformation_removed_fields=["extra"],
    )
    fitted = estimator(store, Sees(), batch_size=1, **more)
    assert len(fitted.fit(xor(local_spark)).getHistory()) == 2


def test_several_inputs_and_outputs_sparse_ones_too(local_spark, store):
    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 3)

        def forward(self, sparse, dense):
            said = self.layer(torch.cat([sparse, dense], 1))
            return said[:, :1], said[:, 1:]

    trained = estimator(
        store,
        Two(),
        feature_cols=["sparse", "dense"],
        input_shapes=[[-1, 2], [-1, 2]],
        label_cols=["float", "mixed"],
        loss=[functional.mse_loss, functional.l1_loss],
        loss_weights=[0.25, 0.75],
        metrics=[[functional.mse_loss, functional.l1_loss]],
        compress_sparse_cols=True,
    ).fit(vectors(local_spark))
    df = trained.setOutputCols(["a", "b"]).transform(vectors(local_spark))
    assert [type(field.dataType) for field in df.schema.fields[-2:]] == [FloatType, VectorUDT]
    assert all(isinstance(row.a, float) and len(row.b) == 2 for row in df.collect())


def test_vectors_for_labels_that_are_numbers(local_spark):
    df = xor(local_spark)
    model = hvd_spark.TorchModel(
        model=Xor(outputs=2),
        input_shapes=[[-1, 2]],
        feature_columns=["features"],
        label_columns=["y"],
        _metadata=measured_metadata(df),
    )
    out = model.transform(df)
    kinds = dict(x1=IntegerType, x2=IntegerType, features=VectorUDT, y=FloatType, weight=FloatType, y__output=VectorUDT)
    assert {field.name: type(field.dataType) for field in out.schema.fields} == kinds
    expected = model.getModel()(torch.tensor([[1.0, 0.0]])).tolist()[0]
    found = [row.y__output for row in out.collect() if (row.x1, row.x2) == (1, 0)]
    assert isinstance(found[0], DenseVector) and found[0].toArray().tolist() == pytest.approx(expected)
    assert model.transform(df.limit(0)).count() == 0
    whole = hvd_spark.TorchModel(
        model=Xor(),
        input_shapes=[[-1, 2]],
        feature_columns=["features"],
        label_columns=["x1"],
        _metadata=measured_metadata(df),
    )
    assert {type(row.x1__output) for row in whole.transform(df).collect()} == {int}


def test_estimators_and_models_are_saved(local_spark, store, tmp_path):
    df = xor(local_spark)
    fitted = estimator(store, run_id="a", validation=None)
    fitted.write().overwrite().save(str(tmp_path / "estimator"))
    loaded = hvd_spark.TorchEstimator.load(str(tmp_path / "estimator"))
    assert (loaded.uid, loaded.getRunId(), loaded.getBatchSize()) == (fitted.uid, "a", 2)
    assert loaded.getStore() is None and loaded.getBackend() is None
    with pytest.raises(ValueError, match="store=None needs the backend SparkBackend"):
        loaded.setBackend(InThisProcess()).fit(df)
    trained = loaded.setStore(store).fit(df)
    assert trained.getOptimizer().param_groups[0]["params"][0] is next(trained.getModel().parameters())
    trained.save(str(tmp_path / "model"))
    again = hvd_spark.TorchModel.load(str(tmp_path / "model"))
    assert (again.getHistory(), again.getRunId()) == (trained.getHistory(), "a")
    rows = [sorted(row.y__output for row in model.transform(df).collect()) for model in (trained, again)]
    assert rows[0] == rows[1]
    with pytest.raises(ValueError, match=r"not a horovod\.spark\.torch\.estimator\.TorchEstimator"):
        hvd_spark.TorchEstimator.load(str(tmp_path / "model"))
    in_pipeline = Pipeline(stages=[estimator(store, run_id="b")]).fit(df).transform(df)
    assert "y__output" in in_pipeline.columns


class Constant(DataModule):
    """Yields ones instead of the data in the files."""

    def __enter__(self):
        print("entered", flush=True)
        return self

    def train_data(self, reader=None):
        while True:
            yield {"features": torch.ones(4, 2), "y": torch.ones(4)}

    val_data = train_data


def test_a_data_module_of_ones_own(local_spark, store, capfd):
    trained = estimator(store, data_module=Constant).fit(xor(local_spark))
    assert len(trained.getHistory()) == 2 and "entered" in capfd.readouterr().out
    assert datamodule_from_name("petastorm") is PetastormDataModule
    assert datamodule_from_name("horovod.spark.torch.datamodule.PetastormDataModule") is PetastormDataModule
    with pytest.raises(ValueError, match="there is no data module nothing: give "):
        datamodule_from_name("nothing")
    with pytest.raises(NotImplementedError, match="has no NVTabular"):
        NVTabularDataModule(train_dir="a", val_dir="b")


@pytest.mark.parametrize(
    "more, message",
    [
        (dict(num_proc=2), "backend and num_proc are both given"),
        (dict(input_shapes=[[-1, 2]] * 2), "Feature column count 1 must equal model inputs count 2"),
        (dict(loss_weights=[0.5, 0.5]), "loss_weights has 2 values for 1 label_cols"),
        (dict(loss=[functional.mse_loss] * 2), "must be length 1"),
        (dict(shuffle_buffer_size=-1), "it cannot be negative"),
        (dict(batch_size=0), "batch_size is 0: it must be 1 or more"),
        (dict(val_batch_size=0), "val_batch_size is 0: it must be 1 or more"),
        (dict(backward_passes_per_step=-1), "backward_passes_per_step is -1: it must be 1 or more"),
        (
            dict(input_shapes=[[5, 2]], batch_size=5),
            "the 4 rows for training of a process make no batch of batch_size=5",
        ),
        (dict(feature_cols=None), "feature_cols is required"),
        (dict(store=None), "store=None needs the backend SparkBackend"),
        (dict(loss=None), "loss or loss_constructors is required"),
        (dict(optimizer=None), "optimizer is required"),
        (dict(mp_start_method="thread"), "mp_start_method='thread' is not one of fork, spawn"),
    ],
)
def test_arguments_that_are_refused(local_spark, store, more, message):
    with pytest.raises(ValueError, match=message):
        estimator(store, **more).fit(xor(local_spark))


def test_two_sorts_of_losses_are_refused():
    with pytest.raises(ValueError, match="loss and loss_constructors are both given"):
        hvd_spark.TorchEstimator(loss=functional.mse_loss, loss_constructors=[lambda **_: None])
    with pytest.raises(TypeError, match="TorchEstimator has no parameter epoch"):
        hvd_spark.TorchEstimator(epoch=3)


def test_start_method_of_multiprocessing(local_spark, store):
    def is_spawn(output, label):
        return torch.tensor(float(multiprocessing.get_start_method() == "spawn"))

    before = multiprocessing.get_start_method()
    fitted = estimator(store, mp_start_method="spawn", metrics=[is_spawn], epochs=1)
    assert fitted.fit(xor(local_spark)).getHistory()[0]["train"]["all_metrics"] == [{"group_0_y": 1.0}]
    assert multiprocessing.get_start_method() == before != "spawn"


def test_tags_of_logs(monkeypatch):
    written = []
    writer = SimpleNamespace(add_scalar=lambda *scalar: written.append(scalar), flush=lambda: None)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", SimpleNamespace(SummaryWriter=lambda folder: writer))
    metrics = [{"group_0_y": 1.0}, {"group_1_y": 2.0}]
    entry = {"epoch": 3, "train": {"loss": 0.5, "all_metrics": metrics}, "validation": {"loss": 4.0, "all_metrics": []}}
    SummaryLog("folder", wanted=True).add(entry)
    of_training = [("train/loss", 0.5, 3), ("train/group_0_y:0", 1.0, 3), ("train/group_1_y:1", 2.0, 3)]
    assert written == [*of_training, ("val/loss", 4.0, 3)]


def test_learning_rates_are_scaled():
    optimizer = torch.optim.SGD(Xor().parameters(), lr=0.001, momentum=0.5)
    assert with_scaled_rate(optimizer.state_dict(), 1 / 4)["param_groups"][0]["lr"] == 0.00025
    assert optimizer.param_groups[0]["lr"] == 0.001


def test_how_many_rows_are_shuffled_together():
    properties = util.DataProperties(1000, 0, {}, avg_row_size=100.0)
    assert shuffle_size(None, properties, 4) == 250
    assert shuffle_size(None, properties._replace(train_rows=10**9), 4) == (256 << 20) // 100
    assert (shuffle_size(0, properties, 4), shuffle_size(7, properties, 4)) == (0, 7)


def minus(output, label, reduction="mean"):
    return label - output if reduction == "none" else (label - output).mean()


def plus(output, label, reduction="mean"):
    return label + output if reduction == "none" else (label + output).mean()


def test_losses_with_weights():
    weights = torch.tensor([1.0, 6.0, 3.0])
    labels, outputs = torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[1.0, 0.0, 2.0]])
    assert calculate_loss(outputs, labels, [1], [minus], weights) == 5
    assert calculate_loss(outputs, labels, [1], [minus]) == 1
    outputs = torch.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, 2.0]])
    labels = torch.tensor([[1.0, 2.0, 3.0], [0.0, 2.0, 4.0]])
    assert calculate_loss(outputs, labels, [0.2, 0.8], [minus, plus], weights) == 9
    labels = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 4.0]])
    assert calculate_loss(outputs, labels, [0.2, 0.8], [minus, plus]).item() == pytest.approx(2.6)


def test_means_of_all_ranks():
    means = Means([[minus], [minus, plus]], ["a", "b"])
    for loss in (1.0, 2.0):
        means.update(
            torch.tensor(loss), [torch.tensor(15.0), torch.tensor(4.0)], [torch.tensor(10.0), torch.tensor(2.0)]
        )
    assert means.result(lambda values: values * 2) == {
        "loss": 3.0,
        "all_metrics": [{"group_0_a": -10.0, "group_0_b": -4.0}, {"group_1_a": -10.0, "group_1_b": 12.0}],
    }


def test_nothing_is_left_behind(local_spark, store):
    before = set(os.listdir("/tmp"))
    estimator(store).fit(xor(local_spark))
    assert not [name for name in set(os.listdir("/tmp")) - before if name.startswith("tmp")]
