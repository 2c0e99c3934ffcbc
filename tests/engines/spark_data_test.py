"""Data of DataFrames in a store, for the estimators: the metadata of its columns, and the files."""

import numpy
import pytest
from pyspark.ml.linalg import DenseVector, SparseVector, VectorUDT
from pyspark.sql.types import ArrayType, FloatType, IntegerType, LongType

from horovod.data.parquet import ParquetTable
from horovod.spark.common import util
from horovod.spark.common._columns import dense_columns, measured_metadata, packed, unpacked
from horovod.spark.common.cache import TrainingDataCache
from horovod.spark.common.estimator import HorovodEstimator
from horovod.spark.common.params import EstimatorParams, ModelParams
from horovod.spark.common.store import Store
from spark_tables import table, vectors, xor


@pytest.fixture
def store(tmp_path):
    util.clear_training_cache()
    return Store.create(str(tmp_path))


def column(kind, sparse=False, shape=1, form="nochange", most=None):
    return {
        "spark_data_type": kind,
        "is_sparse_vector_only": sparse,
        "shape": shape,
        "intermediate_format": form,
        "max_size": shape if most is None else most,
    }


OF_VECTORS = {
    "float": column(FloatType),
    "dense": column(DenseVector, shape=2, form="array"),
    "sparse": column(SparseVector, True, 2, "custom_sparse_format", 1),
    "mixed": column(DenseVector, shape=2, form="array"),
}


def test_metadata_of_all_rows(local_spark):
    assert measured_metadata(vectors(local_spark)) == OF_VECTORS
    rows = [[0, 0.0, None, [1, 1]], [1, None, None, [1, 1]]]
    df = table(local_spark, rows, **{"int": "int", "a.float": "float", "null": "null", "array": "array"})
    found = measured_metadata(df)
    assert found["int"] == column(IntegerType) and found["a.float"] == column(FloatType)
    assert found["array"] == column(ArrayType, shape=2)
    assert found["null"]["shape"] == 1


@pytest.mark.parametrize(
    "values",
    [
        [SparseVector(2, {0: 1.0}), SparseVector(1, {0: 1.0})],
        [DenseVector([1.0, 1.0]), DenseVector([1.0])],
        [DenseVector([1.0, 1.0]), SparseVector(1, {0: 1.0})],
    ],
)
def test_vectors_of_several_sizes_are_refused(local_spark, values):
    df = table(local_spark, [[value] for value in values], data="vector")
    with pytest.raises(ValueError, match="column data has rows of 1 to 2 values: all must have as many"):
        measured_metadata(df)


def test_column_without_values_is_refused(local_spark):
    with pytest.raises(ValueError, match="column data has no values"):
        measured_metadata(table(local_spark, [[None]], data="vector"))


def test_sparse_vectors_in_short():
    all_of_them = [SparseVector(4, {1: 5.0, 3: 6.0}), SparseVector(4, {}), SparseVector(4, {0: 7.0})]
    rows = numpy.array([packed(vector, 2) for vector in all_of_them])
    assert rows.tolist() == [[2, 1, 3, 5, 6], [0, 0, 0, 0, 0], [1, 0, 7, 0, 0]]
    assert unpacked(rows, 4).tolist() == [vector.toArray().tolist() for vector in all_of_them]


def test_a_part_of_the_rows_for_validation(local_spark):
    df = local_spark.range(1000)
    train_df, val_df, ratio = util.train_val_split(df, 0.2)
    assert ratio == 0.2 and 100 < val_df.count() < 300
    assert sorted(row[0] for row in train_df.union(val_df).collect()) == list(range(1000))
    assert util.train_val_split(df, None)[1:] == (None, 0.0)


@pytest.mark.parametrize("kind, values", [("int", [0, 0, 0, 0, 3]), ("bool", [False] * 4 + [True])])
def test_a_column_says_which_rows_are_for_validation(local_spark, kind, values):
    df = table(local_spark, [[float(n), value] for n, value in enumerate(values)], data="float", val=kind)
    train_df, val_df, ratio = util.train_val_split(df, "val")
    assert ratio == pytest.approx(0.2) and train_df.columns == ["data"] == val_df.columns
    assert sorted(row[0] for row in train_df.collect()) == [0, 1, 2, 3]
    assert [row[0] for row in val_df.collect()] == [4]


def read(store, number, columns, of="train"):
    path = store.get_train_data_path(number) if of == "train" else store.get_val_data_path(number)
    rows = ParquetTable(store.get_localized_path(path), columns)
    return rows.read(numpy.arange(len(rows)))


def test_data_is_written_to_folders_of_any_name(local_spark, tmp_path):
    df = local_spark.range(3)
    for name in ("my store", "größe", "a%20b", "100%", "[x]", "{y,z}", "a#b", "a?b", "_under"):
        store = Store.create(str(tmp_path / name))
        with util.prepare_data(1, store, df, ["id"], [], partitions_per_process=1) as number:
            assert (tmp_path / name / f"intermediate_train_data.{number}" / "_SUCCESS").exists()
            assert sorted(read(store, number, ["id"])["id"]) == [0, 1, 2]
    assert len(list(tmp_path.iterdir())) == 9


def test_data_is_written_as_arrays(local_spark, store):
    with util.prepare_data(2, store, vectors(local_spark), ["float"], ["dense", "sparse", "mixed"]) as number:
        found = util.get_dataset_properties(number)
        columns = read(store, number, ["float", "dense", "sparse", "mixed"])
    unknown = {"shape": None, "max_size": None}
    assert found.metadata == {
        "dense": {**column(DenseVector), **unknown},
        "sparse": {**column(DenseVector), **unknown},
        "mixed": {**column(DenseVector), **unknown},
        "float": {**column(FloatType), **unknown},
    }
    assert (found.train_rows, found.val_rows) == (2, 0) and found.avg_row_size > 0
    order = numpy.argsort(columns["float"])
    assert columns["sparse"][order].tolist() == [[2, 0], [0, 1]]
    assert columns["mixed"][order].tolist() == [[1, 1], [0, 1]]


def test_sparse_vectors_are_written_in_short_on_demand(local_spark, store):
    names = ["dense", "sparse", "mixed"]
    with util.prepare_data(2, store, vectors(local_spark), ["float"], names, compress_sparse=True) as number:
        metadata = util.get_dataset_properties(number).metadata
        columns = read(store, number, ["float", *names])
    assert metadata == OF_VECTORS
    order = numpy.argsort(columns["float"])
    assert columns["sparse"][order].tolist() == [[1, 0, 2], [1, 1, 1]]
    assert dense_columns(columns, metadata)["sparse"][order].tolist() == [[2, 0], [0, 1]]


def test_rows_for_validation_are_files_of_their_own(local_spark, store):
    df = table(local_spark, [[float(n), n % 4] for n in range(8)], data="float", val="int")
    with util.prepare_data(2, store, df, ["data"], [], "val", partitions_per_process=1) as number:
        assert read(store, number, ["data"])["data"].tolist() == [0, 4]
        assert sorted(read(store, number, ["data"], "val")["data"].tolist()) == [1, 2, 3, 5, 6, 7]
        assert util.get_dataset_properties(number)[:2] == (2, 6)
    for of_validation, rows in ((0, "validation"), (1, "training")):
        df = table(local_spark, [[1.0, of_validation]] * 4, data="float", val="int")
        with (
            pytest.raises(ValueError, match=f"No rows found in {rows} dataset"),
            util.prepare_data(1, store, df, ["data"], [], "val"),
        ):
            pass


def test_data_sets_are_written_once_and_their_numbers_used_again(local_spark, store):
    written = []

    def prepared(df, features=("features",), **more):
        before = written_at(store)
        context = util.prepare_data(2, store, df, ["y"], list(features), **more)
        number = context.__enter__()
        written.append(written_at(store) != before)
        return number, context

    df, other, third = (xor(local_spark) for _ in range(3))
    number, first = prepared(df)
    beside, second = prepared(other)
    assert (number, beside, written) == (0, 1, [True, True])
    assert util.get_dataset_properties(0) == util.get_dataset_properties(1)
    first.__exit__(None, None, None)
    number, first = prepared(df)
    assert (number, written[-1]) == (0, False)  # it was not in use, but there
    number, more = prepared(df, ["features", "x1"])
    assert (number, written[-1]) == (2, True)  # other columns of the same
    first.__exit__(None, None, None)
    number, last = prepared(third)
    assert (number, written[-1]) == (0, True)  # replaces one that is no longer used
    number, again = prepared(df, validation="x1")
    assert (number, written[-1]) == (3, True)
    for context in (second, more, last, again):
        context.__exit__(None, None, None)
    util.clear_training_cache()
    number, first = prepared(other)
    assert (number, written[-1]) == (0, True)
    first.__exit__(None, None, None)


def written_at(store):
    root = store.get_localized_path(store.prefix_path)
    return {path: store.fs.info(path)["mtime"] for path in store.fs.find(root) if path.endswith(".parquet")}


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(label_columns=[], feature_columns=None), "label_columns cannot be None or empty"),
        (dict(label_columns=["z"], feature_columns=None), "Label column z does not exist"),
        (dict(label_columns=["y"], feature_columns=["z"]), "Feature column z does not exist"),
        (dict(label_columns=["y"], feature_columns=None, sample_weight_col="z"), "Sample weight column z does not"),
        (
            dict(label_columns=["y"], feature_columns=None, validation="z"),
            "validation='z': the DataFrame has no such column",
        ),
        (dict(label_columns=["y"], feature_columns=None, validation=1.5), "validation=1.5 must be at least 0"),
        (
            dict(label_columns=["y"], feature_columns=None, validation=[1]),
            "validation must be a float or the name of a column, not list",
        ),
        (dict(label_columns=["y"], feature_columns=None, partitions_per_process=0), "must both be > 0"),
    ],
)
def test_what_can_not_be_prepared(local_spark, store, arguments, message):
    with (
        pytest.raises(ValueError, match=message),
        util.prepare_data(num_processes=1, store=store, df=xor(local_spark), **arguments),
    ):
        pass


def test_data_that_is_there_already(local_spark, store):
    with pytest.raises(ValueError, match="intermediate_train_data path does not exist in the store"):
        util.get_simple_meta_from_parquet(store, ["y"], ["x1"])
    table(local_spark, [[1, 2.0]] * 3, x1="int", y="float").write.parquet(store.get_train_data_path())
    found = util.get_simple_meta_from_parquet(store, ["y"], ["x1"])
    assert (found.train_rows, found.val_rows) == (3, 0)
    assert found.metadata["x1"]["spark_data_type"] is IntegerType
    with pytest.raises(ValueError, match="has no column x2; it has x1, y"):
        util.get_simple_meta_from_parquet(store, ["y"], ["x2"])
    with pytest.raises(ValueError, match="intermediate_val_data path does not exist"):
        util.get_simple_meta_from_parquet(store, ["y"], ["x1"], validation=0.1)


def test_shapes_have_as_many_values_as_columns():
    metadata = {name: column(None, shape=size) for name, size in dict(x1=1, x2=1, v=12, y=1, w=12).items()}
    features, labels = ["x1", "x2", "v"], ["y", "w"]
    right, outputs = [[1], [1], [-1, 3, 4]], [[1, 1], [-1, 2, 3, 2]]
    util.check_shape_compatibility(metadata, features, labels, right, [[1], [-1, 3, 4]])
    util.check_shape_compatibility(metadata, features, labels, [[1], [1], [3, 2, 2]], outputs)
    util.check_shape_compatibility(metadata, features, labels, right, outputs, [[1], [-1, 3, 4]])
    util.check_shape_compatibility(metadata, features, labels, right, [[7], [3]], [[1], [-1, 3, 4]])
    for inputs, of_outputs, of_labels in (
        ([[1], [1], [-1, 3, 5]], outputs, None),
        ([[2], [1], [-1, 3, 4]], outputs, None),
        ([[1], [-1, 3, 4]], outputs, None),
        (right, [[7], [-1, 3, 4]], None),
        (right, outputs, [[-1, 3, 4]]),
    ):
        with pytest.raises(ValueError, match="must equal"):
            util.check_shape_compatibility(metadata, features, labels, inputs, of_outputs, of_labels)
    metadata["x1"]["shape"] = None  # of Parquet files it is not known
    util.check_shape_compatibility(metadata, features, labels, [[5], [1], [12]])


def test_one_for_all_or_one_for_each():
    assert util.to_list(None, 1) is None
    assert util.to_list("one", 2) == ["one", "one"] == util.to_list(["one"], 2)
    assert util.to_list(["one", "two"], 2) == ["one", "two"]
    with pytest.raises(ValueError, match="must be length 4"):
        util.to_list(["one", "two"], 4)


def test_schema_with_outputs(local_spark):
    df = vectors(local_spark)
    schema = util.get_spark_df_output_schema(df.schema, ["float", "sparse"], ["a", "b"], OF_VECTORS)
    assert schema.fields[:4] == df.schema.fields
    assert [(field.name, field.dataType) for field in schema.fields[4:]] == [("a", FloatType()), ("b", VectorUDT())]
    with pytest.raises(ValueError, match="'mixed' exists in original df schema"):
        util.get_spark_df_output_schema(df.schema, ["float"], ["mixed"], OF_VECTORS)
    with pytest.raises(ValueError, match="1 label columns and 2 output columns"):
        util.get_spark_df_output_schema(df.schema, ["float"], ["a", "b"], OF_VECTORS)


def test_parameters_have_setters_and_getters(local_spark):
    params = EstimatorParams()
    assert (params.getBatchSize(), params.getShuffle(), params.getCallbacks(), params.getRunId()) == (
        32,
        True,
        [],
        None,
    )
    assert params.setParams(batch_size=4, epochs=None).setRunId("a") is params
    assert (params.getBatchSize(), params.getEpochs(), params.getRunId()) == (4, 1, "a")
    params.setParams(continuous_cols=["c"]).setCategoricalCols(["d", "e"])
    assert (params.getContinuousCols(), params.getCategoricalCols()) == (["c"], ["d", "e"])
    with pytest.raises(TypeError, match="EstimatorParams has no parameter epoch"):
        params.setParams(epoch=3)
    with pytest.raises(TypeError, match="batch_size"):
        params.setBatchSize("many")
    model = ModelParams().setLabelColoumns(["y"]).setOutputCols(["z"])
    assert (model.getLabelColumns(), model.getOutputCols()) == (["y"], ["z"])


def test_each_run_has_a_name_of_its_own(monkeypatch):
    names = []
    for second in (1_700_000_000, 1_700_000_000, 1_700_000_001):
        monkeypatch.setattr("time.time", lambda second=second: second + 0.5)
        names.append(HorovodEstimator()._run_id("pytorch"))
    assert len(set(names)) == 3
    assert max(names[:2]) < names[2] and all(name.startswith("pytorch_170000000") for name in names)
    assert HorovodEstimator().setRunId("mine")._run_id("pytorch") == "mine"


def test_whole_numbers_of_spark(local_spark, store):
    local_spark.range(3).write.parquet(store.get_train_data_path())
    found = util.get_simple_meta_from_parquet(store, ["id"], [])
    assert found.metadata["id"]["spark_data_type"] is LongType


def test_cache_counts_users_under_its_lock():
    cache, seen = TrainingDataCache(), []

    class Recorder(type(cache._users)):
        def __setitem__(self, key, count):
            seen.append(cache.lock.locked())
            super().__setitem__(key, count)

    cache._users = Recorder()
    with cache.use_key("key"):
        assert not cache.lock.locked()
    assert seen == [True, True]
