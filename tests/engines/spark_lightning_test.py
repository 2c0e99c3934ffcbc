"""The estimator that trains by PyTorch Lightning: fits in a local session, callbacks, checkpoints, plain models."""

import io
import multiprocessing
import os

import cloudpickle
import pytest
import torch
from torch.nn import functional

import horovod.spark.lightning as hvd_spark
from horovod.spark.common import util
from horovod.spark.common.store import Store
from horovod.spark.lightning.estimator import MIN_PL_VERSION
from in_this_process import InThisProcess
from spark_tables import xor

pl = pytest.importorskip("pytorch_lightning", reason="needs Lightning on the path")


class Xor(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(2, 8)
        self.second = torch.nn.Linear(8, 1)

    def forward(self, features):
        return torch.sigmoid(self.second(torch.tanh(self.first(features.float()))))

    def loss(self, batch):
        return functional.binary_cross_entropy(self(batch["features"]), batch["y"].float().unsqueeze(1))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.03)

    def training_step(self, batch, batch_idx):
        loss = self.loss(batch)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", self.loss(batch), sync_dist=True)


class OldXor(Xor):
    """A model with a hook of Lightning 1."""

    def validation_step(self, batch, batch_idx):
        super().validation_step(batch, batch_idx)
        return self.loss(batch)

    def validation_epoch_end(self, outputs):
        self.log("avg_val_loss", torch.stack(outputs).mean())


cloudpickle.register_pickle_by_value(__import__(__name__))  # the processes have no tests


@pytest.fixture
def store(tmp_path):
    util.clear_training_cache()
    return Store.create(str(tmp_path / "store"))


def estimator(in_store, model=None, **more):
    given = dict(
        backend=InThisProcess(),
        store=in_store,
        model=model or Xor(),
        input_shapes=[[-1, 2]],
        feature_cols=["features"],
        label_cols=["y"],
        batch_size=4,
        epochs=2,
        random_seed=1,
        verbose=0,
        partitions_per_process=1,
        validation="x1",
    )
    return hvd_spark.TorchEstimator(**{**given, **more})


class Counts(pl.Callback):
    """How often which hooks are called, as the process says at the end."""

    def __init__(self):
        self.train, self.val, self.old = 0, 0, 0

    def on_train_epoch_end(self, trainer, module):
        self.train += 1

    def on_validation_epoch_end(self, trainer, module):
        self.val += 1

    def on_epoch_end(self, trainer, module):  # Lightning 1's
        self.old += 1

    def on_train_end(self, trainer, module):
        print(f"counted {self.train} {self.val} {self.old}", flush=True)


def test_two_processes_learn_xor(local_spark, store, capfd):
    more = dict(backend=None, num_proc=2, epochs=60, validation=None, callbacks=[Counts()])
    trained = estimator(store, **more).fit(xor(local_spark, 8))
    assert capfd.readouterr().out.count("counted 60 0 60") == 2
    assert 0 < trained.getHistory()["train_loss"] < 0.3
    said = {(row.x1, row.x2): round(row.y__output) for row in trained.transform(xor(local_spark)).collect()}
    assert said == {(0, 0): 0, (0, 1): 1, (1, 0): 1, (1, 1): 0}
    assert store.get_checkpoints(trained.getRunId())
    assert isinstance(trained, hvd_spark.TorchModel) and isinstance(trained.getModel(), Xor)


def test_without_a_store(local_spark):
    more = dict(backend=None, num_proc=2, epochs=3, validation=0.3)
    trained = estimator(None, **more).fit(xor(local_spark, 8))
    assert trained.getHistory()["train_loss"] > 0
    assert len(trained.transform(xor(local_spark)).select("y__output").collect()) == 4


def test_old_hooks_and_callbacks(local_spark, store, capfd):
    callbacks = [
        Counts(),
        pl.callbacks.ModelCheckpoint(monitor="val_loss", mode="min", save_top_k=1),
        pl.callbacks.EarlyStopping(monitor="val_loss", patience=1, min_delta=10),
        pl.callbacks.LearningRateMonitor(logging_interval="step"),
    ]
    trained = estimator(store, OldXor(), epochs=5, callbacks=callbacks).fit(xor(local_spark, 2))
    assert "counted 2 2 4" in capfd.readouterr().out
    assert {"train_loss", "val_loss", "avg_val_loss"} <= set(trained.getHistory())


def test_a_run_with_a_checkpoint_continues(local_spark, store, capfd):
    df = xor(local_spark, 4)
    first = estimator(store, run_id="run1", epochs=30, validation=None, verbose=1)
    loss = first.fit(df).getHistory()["train_loss"]
    assert "Resuming" not in capfd.readouterr().out
    again = first.fit(df, {first.epochs: 2})
    assert "Resuming training from last checkpoint" in capfd.readouterr().out
    assert again.getHistory()["train_loss"] < loss + 0.1 < 0.8


def test_the_newest_checkpoint_is_taken(store):
    """Lightning numbers the files of save_top_k=-1, the first one apart; that of save_last is newer than all."""
    trained = estimator(store, run_id="run1", verbose=0)
    folder = store.get_checkpoint_path("run1")
    store.fs.makedirs(store.get_localized_path(folder))
    for epoch, name in enumerate(["checkpoint", *(f"checkpoint-v{number}" for number in range(1, 12)), "last"]):
        data = io.BytesIO()
        torch.save({"state_dict": {"epoch": torch.tensor(epoch)}}, data)
        with store.fs.open(store.get_localized_path(f"{folder}/{name}.ckpt"), "wb") as file:
            file.write(data.getvalue())
        assert trained._load_checkpoint("run1")["state_dict"]["epoch"] == epoch


def test_parquet_files_that_are_there_already(local_spark, store):
    df = xor(local_spark, 2)
    with util.prepare_data(1, store, df, ["y"], ["features"], "x1", partitions_per_process=1) as number:
        for more in (dict(inmemory_cache_all=True), dict(train_steps_per_epoch=1, validation_steps_per_epoch=3)):
            trained = estimator(store, **more).fit_on_parquet(dataset_idx=number)
            assert trained.transform(df).count() == 8


def test_models_that_are_not_lightning_modules(local_spark, store):
    class Plain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def forward(self, features):
            return torch.sigmoid(self.layer(features))

    model = Plain()
    more = dict(optimizer=torch.optim.SGD(model.parameters(), lr=0.1), loss=functional.binary_cross_entropy)
    fitted = estimator(store, model, sample_weight_col="weight", run_id="plain", **more)
    trained = fitted.fit(xor(local_spark))
    assert set(trained.getHistory()) >= {"train_loss", "val_loss"} and type(trained.getModel()).__name__ == "Plain"
    assert len(fitted.fit(xor(local_spark)).transform(xor(local_spark)).collect()) == 4


def test_data_module_of_ones_own(local_spark, store):
    class Ones(pl.LightningDataModule):
        def __init__(self, train_dir, val_dir, train_batch_size, **others):
            super().__init__()
            assert (
                train_dir.startswith("file://")
                and train_batch_size == 4
                and others["schema_fields"] == ["features", "y"]
            )
            assert others["transformation"]({"x": 1}) == {"x": 1} and others["seed"] == 1
            assert (others["reader_worker_count"], others["val_async_data_loader_queue_size"]) == (2, 7)

        def train_dataloader(self):
            return torch.utils.data.DataLoader([{"features": torch.ones(2), "y": torch.tensor(1.0)}] * 12, batch_size=4)

        val_dataloader = train_dataloader

    fitted = estimator(store, data_module=Ones, transformation_fn=dict, val_async_data_loader_queue_size=7)
    assert fitted.fit(xor(local_spark)).getHistory()["train_loss"] > 0


def test_loss_that_is_not_a_number_ends_the_training(local_spark, store):
    class Broken(Xor):
        def loss(self, batch):
            return super().loss(batch) * float("nan")

    with pytest.raises(ValueError, match="the loss is nan: terminate_on_nan ends the training"):
        estimator(store, Broken(), terminate_on_nan=True, validation=None).fit(xor(local_spark))


class SaysStartMethod(pl.Callback):
    def on_train_end(self, trainer, module):
        print("started by", multiprocessing.get_start_method(), flush=True)


def test_profiles_are_in_the_folder_of_logs(local_spark, store):
    fitted = estimator(store, profiler="advanced", run_id="profiled", epochs=1, validation=None)
    fitted.fit(xor(local_spark))
    folder = store.get_localized_path(store.get_logs_path("profiled"))
    assert [os.path.basename(path) for path in store.fs.glob(f"{folder}/*.txt")] == ["fit-profile.txt"]


def test_parameters(local_spark, store, capfd):
    fitted = estimator(store, mp_start_method="spawn", trainer_args={"max_epochs": 1}, logger=False, num_gpus=0)
    fitted.setCallbacks([SaysStartMethod()])
    assert (fitted.getMpStartMethod(), fitted.getNumGPUs(), fitted.getTerminateOnNan()) == ("spawn", 0, False)
    fitted.setLogger(None).setLogEveryNSteps(1).setProfiler("simple")
    fitted.fit(xor(local_spark))
    assert "started by spawn" in capfd.readouterr().out
    assert tuple(map(int, pl.__version__.split(".")[:2])) >= tuple(map(int, MIN_PL_VERSION.split(".")[:2]))
    for name, value in (("loss", functional.mse_loss), ("loss_weights", [1.0])):
        with pytest.raises(ValueError, match=f"^{name} is not for a LightningModule"):
            estimator(store, **{name: value}).fit(xor(local_spark))
