"""Estimators without a store: the rows of a DataFrame go to the processes of the training directly."""

import glob
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import cloudpickle
import numpy
import pyspark
import pytest
import torch
from pyspark.ml.linalg import SparseVector
from torch.nn import functional

import horovod.runner._engine_run
import horovod.spark.keras
import horovod.spark.torch as hvd_spark
from horovod.spark.common import util
from horovod.spark.common._direct import rows_for_tasks
from horovod.spark.common._task_rows import FLAG, TRAIN, TaskRows, path_of, written
from horovod.spark.common.backend import Backend
from horovod.spark.common.datamodule import ParquetDataModule
from horovod.spark.common.store import Store
from horovod.spark.runner import run_on_rows
from spark_cluster import environment
from spark_tables import table, xor

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras", reason="needs Keras")
cloudpickle.register_pickle_by_value(__import__(__name__))  # the processes have no tests

TRUTH = {(0, 0): 0, (0, 1): 1, (1, 0): 1, (1, 1): 0}


class Xor(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.second = torch.nn.Linear(2, 8), torch.nn.Linear(8, 1)

    def forward(self, features):
        return torch.sigmoid(self.second(torch.tanh(self.first(features))))


def estimator(model=None, **more):
    model = model or Xor()
    given = dict(
        num_proc=2,
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
    )
    return hvd_spark.TorchEstimator(**{**given, **more})


def folders():
    return set(glob.glob(os.path.join(tempfile.gettempdir(), "blockmgr-*", "horovod-rows-*")))


def said(trained, spark):
    return {(row.x1, row.x2): round(row.y__output) for row in trained.transform(xor(spark)).collect()}


def test_torch_learns_and_nothing_is_left_behind(local_spark):
    before = folders()
    model = Xor()
    trained = estimator(model, epochs=60, optimizer=torch.optim.Adam(model.parameters(), lr=0.02)).fit(
        xor(local_spark, 8)
    )
    assert said(trained, local_spark) == TRUTH
    assert len(trained.getHistory()) == 60
    assert folders() == before


def test_each_row_comes_once_in_an_epoch(local_spark, tmp_path):
    """The shorter partition's first rows come again, so that both processes have equally many."""

    def noted(row):
        with open(tmp_path / str(os.getpid()), "a") as file:
            print(int(row["features"]), row["y"] > 1, file=file)
        return row

    rows = [(float(number), 2.0 if number < 8 else 0.5, number < 8) for number in range(49)]
    df = table(local_spark, rows, features="float", y="float", validation="bool")
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    loss = functional.mse_loss
    shapes = dict(input_shapes=[[-1, 1]], model=model, optimizer=optimizer, loss=loss)
    more = dict(validation="validation", transformation_fn=noted, batch_size=4, epochs=3, **shapes)
    trained = estimator(**more).fit(df)
    assert [set(entry) for entry in trained.getHistory()] == [{"epoch", "train", "validation"}] * 3
    files = [path.read_text().splitlines() for path in tmp_path.iterdir()]
    assert len(files) == 2
    seen = Counter(line for lines in files for line in lines)
    for is_validation, numbers in ((True, range(8)), (False, range(8, 49))):
        counts = [seen.pop(f"{number} {is_validation}") for number in numbers]
        assert min(counts) == 3
        assert sum(counts) - 3 * len(counts) <= 3 * 4  # those of the shorter partition that come again
    assert not seen
    assert len(files[0]) == len(files[1])


def test_keras(local_spark):
    layers = [keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(1, activation="sigmoid")]
    trained = horovod.spark.keras.KerasEstimator(
        num_proc=2,
        model=keras.Sequential([keras.Input([2]), *layers]),
        optimizer=keras.optimizers.Adam(0.02),
        loss="binary_crossentropy",
        feature_cols=["features"],
        label_cols=["y"],
        batch_size=2,
        epochs=3,
        random_seed=1,
        verbose=0,
        validation=0.25,
    ).fit(xor(local_spark, 8))
    assert {name: len(values) for name, values in trained.getHistory().items()} == {"loss": 3, "val_loss": 3}
    assert said(trained, local_spark).keys() == TRUTH.keys()


def test_sparse_vectors_and_weights(local_spark):
    rows = [(SparseVector(2, {0: 1.0}), 1.0, 0.5), (SparseVector(2, {1: 1.0}), 0.0, 2.0)] * 4
    df = table(local_spark, rows, features="vector", y="float", weight="float")
    more = dict(compress_sparse_cols=True, sample_weight_col="weight")
    assert len(estimator(**more).fit(df).getHistory()) == 2


@pytest.mark.parametrize("framework", ["torch", "keras"])
def test_example(framework, tmp_path):
    flags = ["--framework", framework] + (["--store", str(tmp_path / "store")] if framework == "keras" else [])
    script = Path(__file__).resolve().parents[2] / "examples" / "spark" / "estimator_on_spark.py"
    command = [sys.executable, str(script), "--epochs", "4", *flags]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"test accuracy (8[5-9]|9\d)\.\d%$", done.stdout, re.M), done.stdout


@pytest.mark.skipif(
    pyspark.__version__ < "4", reason="Spark 3 starts a task that takes rows when the first ones are there"
)
def test_start_timeout_is_not_for_the_rows(local_spark, tmp_path, monkeypatch):
    """The rows come only when the caller knows that both tasks have begun."""
    begun, times, writers = set(), [], []
    both = tmp_path / "both"  # a named pipe: who opens it to read waits until it is open to write
    os.mkfifo(both)

    class Watched(horovod.runner._engine_run.Run):
        def begin(self, name, executor):
            begun.add(name)
            if len(begun) == 2:
                writers.append(os.open(both, os.O_RDWR))
            return super().begin(name, executor)

    class Timed(horovod.runner._engine_run.Job):
        def __init__(self, limits, *more):
            times.append(limits.start_timeout)
            super().__init__(limits, *more)

    monkeypatch.setattr(horovod.runner._engine_run, "Run", Watched)
    monkeypatch.setattr(horovod.runner._engine_run, "Job", Timed)

    def late(batches):
        open(both).close()
        yield from batches

    rows = local_spark.range(0, 4, 1, 2).selectExpr("id", f"false AS {FLAG}")
    rows = rows.mapInArrow(late, f"id long, {FLAG} boolean")
    found = run_on_rows(rows, lambda: os.path.exists(path_of(TRAIN)), num_proc=2, start_timeout=60, verbose=0)
    for writer in writers:
        os.close(writer)
    assert found == [True, True]
    assert times[0] > 86400, "the daemon waits, too"


HOLDER = """
import sys
from horovod.spark.common._task_rows import written
with written([]) as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_rows_of_a_process_that_was_killed_are_removed_at_the_next_start(tmp_path, monkeypatch):
    """They are in another executor's folder, or in this one's. Those of a process that lives stay, and those of other users."""
    holders, folders = [], []
    for name in ("blockmgr-1", "blockmgr-2", "blockmgr-2"):
        (tmp_path / name).mkdir(exist_ok=True)
        monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path / name},/elsewhere")
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        holders.append(subprocess.Popen([sys.executable, "-c", HOLDER], **pipes))
        folders.append(Path(holders[-1].stdout.readline().strip()))
    for killed in holders[:2]:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    with monkeypatch.context() as another_user:
        another_user.setattr("os.geteuid", lambda: os.getuid() + 1)
        with written([]):
            assert all(folder.exists() for folder in folders)
    with written([]) as own:
        assert sorted(tmp_path.glob("*/*")) == sorted([folders[2], Path(own)])
    holders[2].communicate("")
    assert sorted(tmp_path.glob("*/*")) == []


class Elsewhere(Backend):
    def num_processes(self):
        return 2


@pytest.mark.parametrize(
    "more, message",
    [
        (dict(data_module=ParquetDataModule), "data_module reads from a store"),
        (dict(num_proc=None, backend=Elsewhere()), "Elsewhere has no run_on_rows; give a store"),
        (dict(validation="x3"), "validation='x3': the DataFrame has no such column"),
        (dict(validation="none"), "there are no rows for validation"),
        (dict(feature_cols=["nothing"]), "Feature column nothing does not exist"),
    ],
)
def test_arguments_that_are_refused(local_spark, more, message):
    rows = [(row.features, row.y, 0) for row in xor(local_spark).collect()]
    df = table(local_spark, rows, features="vector", y="float", none="int")
    with pytest.raises(ValueError, match=message):
        estimator(**more).fit(df)


@pytest.mark.parametrize(
    "kind, marks", [("int", [0, 0, 1, None, -1, 2]), ("boolean", [False, False, True, None, None, True])]
)
def test_rows_of_a_column_for_validation_are_those_of_a_store(local_spark, tmp_path, kind, marks):
    """A mark that is null, or below 0, is for neither."""
    rows = [(float(number), 1.0, mark) for number, mark in enumerate(marks)]
    df = local_spark.createDataFrame(rows, f"x double, y double, mark {kind}")
    with rows_for_tasks(1, df, ["y"], ["x"], "mark") as (_, direct):
        pass
    with util.prepare_data(1, Store.create(str(tmp_path)), df, ["y"], ["x"], "mark") as number:
        stored = util.get_dataset_properties(number)
    assert (direct.train_rows, direct.val_rows) == (stored.train_rows, stored.val_rows) == (2, 2)


def test_a_process_without_rows_is_said(local_spark):
    with pytest.raises(RuntimeError, match="a process has no rows for training: with store=None each needs some"):
        estimator().fit(xor(local_spark).limit(1))


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("own, length, block", [(10, 10, 4), (10, 12, 4), (8, 13, 4), (3, 10, 20), (1, 5, 2)])
def test_rows_of_a_task_repeat_up_to_a_length(monkeypatch, own, length, block, shuffle):
    monkeypatch.setattr("horovod.elastic.cursor.size", lambda: 2)
    monkeypatch.setattr("horovod.elastic.cursor.rank", lambda: 1)
    rows = TaskRows([own - own // 2, own // 2], block, length, shuffle, 7)
    blocks = list(rows.blocks())
    assert len(rows) == length
    assert [len(each) for each in blocks[:-1]] == [block] * (len(blocks) - 1)
    counts = Counter(numpy.concatenate(blocks).tolist())
    assert sum(counts.values()) == length
    assert sorted(counts) == list(range(own))
    assert max(counts.values()) - min(counts.values()) <= 1
