"""Stores of the estimators for Spark: paths, files, and the stores that a run's processes get. No Spark is started."""

import os
import pickle
import uuid

import pyarrow
import pyarrow.parquet
import pytest

from horovod.data.parquet import ParquetTable
from horovod.spark.common._batches import file_system_of
from horovod.spark.common.store import (
    AbstractFilesystemStore,
    DBFSLocalStore,
    FilesystemStore,
    HDFSStore,
    LocalStore,
    Store,
)


@pytest.fixture(params=["path", "file:///", "file://localhost/", "memory://"])
def store(request, tmp_path):
    prefix = {
        "path": str(tmp_path),
        "file:///": tmp_path.as_uri(),
        "file://localhost/": f"file://localhost{tmp_path}",
        "memory://": f"memory://{uuid.uuid4()}",
    }
    return Store.create(prefix[request.param])


def write_numbers(store, path):
    local = store.get_localized_path(path)
    store.fs.makedirs(local, exist_ok=True)
    with store.fs.open(f"{local}/part-0.parquet", "wb") as file:
        pyarrow.parquet.write_table(pyarrow.table({"number": [1, 2, 3]}), file)


def test_files(store):
    path = store.prefix_path + "/note"
    assert not store.exists(path)
    store.write_text(path, "höre")
    assert store.exists(path) and store.read(path) == "höre".encode()
    assert store.get_filesystem() is store.fs


# Names of folders that one might quote, expand or cut.
NAMES = [
    "my store",
    "größe",
    "a%20b",
    "100%",
    "a+b=c,d",
    "[x]",
    "{y}",
    "a*",
    "a#b",
    "a?b",
    "a:b",
    "a\\b",
    "'c\"",
    ".hidden",
    "_under",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("url", ["", "file://", "file://localhost"])
def test_folders_of_any_name(tmp_path, name, url, monkeypatch):
    folder = tmp_path / name
    store = Store.create(f"{url}{folder}", train_path=f"{url}{folder}/train", runs_path=f"{folder}/runs of mine")
    assert store.prefix_path == f"file://{folder}"
    assert store.get_runs_path() == f"file://{folder}/runs of mine"
    write_numbers(store, store.get_train_data_path(0))
    assert [each.name for each in folder.iterdir()] == ["train.0"]
    assert store.is_parquet_dataset(store.get_train_data_path(0))
    table = ParquetTable(*file_system_of(store.get_train_data_path(0), None)[:1], ["number"])
    assert len(table) == 3
    (tmp_path / "local").mkdir()
    (tmp_path / "local" / "checkpoint.ckpt").write_text("1")
    store.to_remote("a run", 0).sync(str(tmp_path / "local"))
    assert (folder / "runs of mine" / "a run" / "checkpoint.ckpt").exists()
    assert store.get_checkpoints("a run") == [f"{folder}/runs of mine/a run/checkpoint.ckpt"]
    assert store.read(store.get_checkpoints("a run")[0]) == b"1"
    monkeypatch.chdir(tmp_path)
    assert Store.create(name).get_val_data_path() == f"file://{folder}/intermediate_val_data"


def test_parquet_data_sets(store):
    path = store.get_train_data_path(1)
    assert not store.is_parquet_dataset(path)
    write_numbers(store, path)
    assert store.is_parquet_dataset(path)
    assert store.get_parquet_dataset(path).read().to_pydict() == {"number": [1, 2, 3]}
    store.write_text(store.prefix_path + "/text", "no Parquet")
    assert not store.is_parquet_dataset(store.prefix_path + "/text")


def test_run_is_copied_to_the_store(store, tmp_path):
    local = tmp_path / "local"
    (local / "logs").mkdir(parents=True)
    (local / "a").write_text("1")
    sync = pickle.loads(pickle.dumps(store.sync_fn("run7")))
    sync(str(local))
    (local / "logs" / "b").write_text("2")
    (local / "x.ckpt").write_text("4")
    (local / "a").write_text("three")
    run = store.get_run_path("run7")
    store.write_text(run + "/other", "stays")
    sync(str(local))
    contents = {name: store.read(f"{run}/{name}") for name in ("a", "logs/b", "x.ckpt", "other")}
    assert contents == {"a": b"three", "logs/b": b"2", "x.ckpt": b"4", "other": b"stays"}
    assert [os.path.basename(path) for path in store.get_checkpoints("run7")] == ["x.ckpt"]


def test_what_has_not_changed_is_not_copied_again(tmp_path):
    store = Store.create(str(tmp_path / "store"))
    (tmp_path / "local").mkdir()
    for name in "ab":
        (tmp_path / "local" / name).write_text("1")
    sync = store.sync_fn("run")
    sync(str(tmp_path / "local"))
    for name in "ab":
        store.write_text(f"{store.get_run_path('run')}/{name}", "in the store")
    (tmp_path / "local" / "b").write_text("22")
    sync(str(tmp_path / "local"))
    assert [store.read(f"{store.get_run_path('run')}/{name}") for name in "ab"] == [b"in the store", b"22"]


def test_a_runs_view_of_the_store(store):
    remote = pickle.loads(pickle.dumps(store.to_remote("run1", 3)))
    prefix = store.prefix_path
    assert remote.train_data_path == prefix + "/intermediate_train_data.3" == store.get_train_data_path(3)
    assert remote.val_data_path == prefix + "/intermediate_val_data.3" == store.get_val_data_path(3)
    assert remote.test_data_path == prefix + "/intermediate_test_data.3" == store.get_test_data_path(3)
    assert (remote.runs_path, remote.run_path) == (prefix + "/runs", prefix + "/runs/run1")
    assert (remote.checkpoint_path, remote.checkpoint_filename) == (prefix + "/runs/run1", "checkpoint")
    assert (remote.logs_path, remote.logs_subdir, remote.saving_runs) == (prefix + "/runs/run1/logs", "logs", True)
    with remote.get_local_output_dir() as path:
        assert os.listdir(path) == []
        with open(path + "/said", "w") as file:
            file.write("it")
        remote.sync(path)
    assert not os.path.exists(path)
    assert store.exists(prefix + "/runs/run1/said")
    with pytest.raises(AttributeError, match="a run's store has no nonsense"):
        remote.nonsense  # noqa: B018


def test_paths_of_ones_own(tmp_path):
    store = LocalStore(str(tmp_path), train_path=str(tmp_path / "mine"), save_runs=False, checkpoint_filename="model")
    assert isinstance(store, FilesystemStore) and isinstance(store, AbstractFilesystemStore)
    assert store.get_train_data_path() == (tmp_path / "mine").as_uri()
    assert store.get_val_data_path() == (tmp_path / "intermediate_val_data").as_uri()
    assert (store.get_checkpoint_path("x"), store.get_logs_path("x"), store.saving_runs()) == (None, None, False)
    assert (store.get_checkpoints("x"), store.get_checkpoint_filename()) == ([], "model")
    assert store.get_full_path_fn()("/a/b") == "file:///a/b"
    assert store.get_localized_path("file:///a/b") == "/a/b"


def test_url_of_files_has_no_other_host(tmp_path):
    store = FilesystemStore(f"file://localhost{tmp_path}", train_path="file://localhost/mine")
    assert store.prefix_path == tmp_path.as_uri()  # as Spark, too, understands it
    assert store.get_train_data_path() == "file:///mine"
    assert store.get_localized_path("file://localhost/a/b") == "/a/b"
    for use in (Store.create, store.get_full_path, store.get_localized_path):
        with pytest.raises(ValueError, match=r"^file://data/a names the host data: give file:///PATH"):
            use("file://data/a")


@pytest.mark.parametrize(
    "url, host, port, full",
    [
        ("hdfs://namenode01:8020/user/test", "namenode01", 8020, "hdfs://namenode01:8020/out"),
        ("hdfs:///user/test", "default", 0, "hdfs:///out"),
        ("/user/test", "default", 0, "hdfs:///out"),
    ],
)
def test_urls_of_hdfs(url, host, port, full):
    store = HDFSStore(url)
    assert store.get_full_path("/out") == full == store.get_full_path(full)
    assert store.get_localized_path(full) == "/out" == store.get_localized_path("/out")
    assert (store._hdfs_kwargs["host"], store._hdfs_kwargs["port"]) == (host, port)
    assert store.get_run_path("1") == full.removesuffix("/out") + "/user/test/runs/1"


def test_settings_of_hdfs():
    store = Store.create("hdfs://a/b", host="other", port=9, user="me", train_path="/t", val_path="hdfs://a/v")
    assert isinstance(store, HDFSStore)
    expected = {"host": "other", "port": 9, "user": "me", "kerb_ticket": None, "extra_conf": None}
    assert store._hdfs_kwargs == expected
    assert store.storage_options == {"user": "me"}  # the rest says the URL
    assert (store.get_train_data_path(), store.get_val_data_path()) == ("hdfs://a/t", "hdfs://a/v")
    for wrong in ("file:///user/test", "hdfs://namenode01:8020"):
        with pytest.raises(ValueError, match=wrong):
            HDFSStore(wrong)


@pytest.mark.parametrize(
    "path", ["/dbfs/tmp/a", "dbfs:/tmp/a", "file:/dbfs/tmp/a", "file:///dbfs/tmp/a", "file://localhost/dbfs/tmp/a"]
)
def test_paths_of_databricks(path, monkeypatch):
    assert not isinstance(Store.create(path), DBFSLocalStore) if path.startswith("/") else True
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "7.4")
    store = Store.create(path)
    assert isinstance(store, DBFSLocalStore)
    assert DBFSLocalStore.normalize_path(path) == "/dbfs/tmp/a" == store.get_localized_path(path)
    assert (store.prefix_path, store.get_checkpoint_filename()) == ("file:///dbfs/tmp/a", "checkpoint.tf")


def test_other_paths_are_not_databricks():
    assert not DBFSLocalStore.matches_dbfs("dbfs://tmp/a")
    for use in (DBFSLocalStore, DBFSLocalStore.normalize_path):
        with pytest.raises(ValueError, match="dbfs://tmp/a is not a path of DBFS: /dbfs/"):
            use("dbfs://tmp/a")


def test_an_own_store_says_what_it_lacks():
    with pytest.raises(NotImplementedError):
        Store().get_train_data_path()


def test_files_and_folders_are_copied_into_the_store(store, tmp_path):
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "a").write_bytes(b"1")
    (source / "b").write_bytes(b"2")
    with pytest.raises(IsADirectoryError, match="recursive=True"):
        store.copy(str(source), store.get_run_path("run"))
    for _ in range(2):  # into a folder that is there, too
        store.copy(str(source), store.get_run_path("run"), recursive=True)
    store.copy(str(source / "b"), f"{store.get_run_path('run')}/c")
    found = [store.read(f"{store.get_run_path('run')}/{name}") for name in ("deep/a", "b", "c")]
    assert found == [b"1", b"2", b"2"]


def test_what_there_is_not_is_refused_by_name(store):
    with pytest.raises(NotImplementedError, match=r"^Store\.get_data_metadata_path: .*get_simple_meta_from_parquet"):
        store.get_data_metadata_path(store.get_train_data_path())
    with pytest.raises(NotImplementedError, match=r"^Store\.read_serialized_keras_model: .*keras\.models\.load_model"):
        store.read_serialized_keras_model("model.keras", None, {})
