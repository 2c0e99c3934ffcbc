"""Types of columns: each estimator gives its model a column in the column's own type, in training and in transform, or refuses it
by name before anything starts."""

import datetime
import decimal
import os
import sys
from types import SimpleNamespace

import cloudpickle
import numpy
import pyarrow
import pytest
import torch
from pyspark.sql.types import BooleanType, DoubleType, LongType
from torch.nn import functional

import horovod.spark.lightning as hvd_lightning
import horovod.spark.torch as hvd_torch
from horovod.spark.common import util
from horovod.spark.common._arrays import array_types, arrays_of, check_arrow_types, check_whole_numbers
from horovod.spark.common.store import Store
from horovod.spark.keras._arrays import all_typed
from horovod.spark.keras._training import Batches
from in_this_process import InThisProcess

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras", reason="needs Keras")
pl = pytest.importorskip("pytorch_lightning", reason="needs Lightning on the path")
import horovod.spark.keras as hvd_keras  # noqa: E402

cloudpickle.register_pickle_by_value(__import__(__name__))  # the processes have no tests
FIRST = 2**24 + 1  # the first whole number that float32 does not hold
IDS = [FIRST + n for n in range(8)]


class Never(InThisProcess):
    def run(self, *args, **kwargs):
        pytest.fail("a process was started")

    run_on_rows = run


@pytest.fixture
def store(tmp_path):
    util.clear_training_cache()
    return Store.create(str(tmp_path / "store"))


def ids(spark):
    return spark.createDataFrame([(n, float(n % 2)) for n in IDS], "id long, y double")


def is_odd(dtype="int64"):
    """A model that says without any error whether a number is odd, if it gets that number."""
    number = keras.Input([1], dtype=dtype)
    bit = keras.ops.cast(keras.ops.mod(number, 2), "float32")
    return keras.Model(number, keras.layers.Dense(1, kernel_initializer="ones", use_bias=False)(bit))


class Odd(pl.LightningModule):
    """The same, which also looks at the types."""

    def __init__(self):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.ones(1))

    def forward(self, number):
        assert number.dtype == torch.int64, number.dtype
        return (number % 2).reshape(-1) * self.factor

    def training_step(self, batch, batch_idx):
        assert batch["y"].dtype == torch.float64
        loss = functional.mse_loss(self(batch["id"]), batch["y"].float())
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.0)


COMMON = dict(feature_cols=["id"], label_cols=["y"], batch_size=4, epochs=1, verbose=0, partitions_per_process=1)


def keras_estimator(**given):
    return hvd_keras.KerasEstimator(model=is_odd(), optimizer=keras.optimizers.SGD(0.0), loss="mse", **given)


def lightning_estimator(**given):
    return hvd_lightning.TorchEstimator(model=Odd(), **given)


def torch_estimator(**given):
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    return hvd_torch.TorchEstimator(
        model=model, optimizer=optimizer, loss=functional.mse_loss, input_shapes=[[-1, 1]], **given
    )


def plain_lightning_estimator(**given):
    class Plain(torch.nn.Linear):
        def forward(self, id):
            return super().forward(id.reshape(-1, 1))

    model = Plain(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    return hvd_lightning.TorchEstimator(model=model, optimizer=optimizer, loss=functional.mse_loss, **given)


@pytest.mark.parametrize("make", [keras_estimator, lightning_estimator])
@pytest.mark.parametrize("where", ["with a store", "without a store"])
def test_large_whole_numbers_reach_the_model(local_spark, store, make, where):
    place = dict(store=store, backend=InThisProcess()) if where == "with a store" else dict(store=None, num_proc=1)
    df = ids(local_spark)
    trained = make(**COMMON, **place).fit(df)
    assert numpy.ravel(trained.getHistory()["loss"])[-1] == 0
    assert [row.y__output for row in trained.transform(df).collect()] == [n % 2 for n in IDS]


@pytest.mark.parametrize("make", [torch_estimator, plain_lightning_estimator])
def test_where_models_get_floats_large_whole_numbers_are_refused_by_name(local_spark, store, make):
    message = "column id has the whole number [0-9]+, which float32 does not hold exactly: the model gets floats; "
    given = dict(COMMON, store=store, backend=InThisProcess())
    with pytest.raises(ValueError, match=message):
        make(**given).fit(ids(local_spark))
    trained = make(**given).fit(local_spark.createDataFrame([(2**24, 1.0)], "id long, y double"))
    with pytest.raises(ValueError, match=message):
        trained.transform(ids(local_spark))


def test_a_keras_model_whose_input_changes_them_is_refused_by_name(local_spark, store):
    narrow = keras_estimator(**COMMON, store=store, backend=InThisProcess()).setModel(is_odd("float32"))
    with pytest.raises(
        ValueError, match=r"column id has the whole number [0-9]+, .*keras\.Input\(\.\.\., dtype='int64'\)"
    ):
        narrow.fit(ids(local_spark))


def test_columns_of_a_keras_model_have_the_types_of_the_columns_or_its_inputs():
    package = SimpleNamespace(floatx="float32", backend="tensorflow")
    columns = [numpy.zeros(2, kind) for kind in ("int8", "int64", "bool", "float64", "float64", "float32")]
    wanted = ["float32", None, "float32", "float64", "int64"]
    found = all_typed(list("abcdef"), columns, wanted, package)
    assert [each.dtype.name for each in found] == ["int8", "int64", "bool", "float64", "float32", "float32"]
    plan = SimpleNamespace(
        metadata={}, package=package, features=["a"], labels=["b"], sample_weight="w", label_shapes=None
    )
    batch = {"a": numpy.array([FIRST]), "b": numpy.array([FIRST]), "w": numpy.array([3])}
    inputs, labels, weights = next(Batches(plan, SimpleNamespace(inputs=None, outputs=None)).of([batch]))
    assert (inputs.dtype, labels.dtype, weights.dtype) == (numpy.int64, numpy.int64, numpy.float32)


def test_jax_with_32_bits_refuses_what_it_would_change(monkeypatch):
    config = SimpleNamespace(jax_enable_x64=False)
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(config=config))
    package = SimpleNamespace(floatx="float32", backend="jax")
    with pytest.raises(ValueError, match=r"column id has the whole number 2147483648, .*JAX_ENABLE_X64=1"):
        all_typed(["id"], [numpy.array([2**31])], [None], package)
    assert all_typed(["id"], [numpy.array([2**31 - 1])], ["int64"], package)[0][0] == 2**31 - 1
    config.jax_enable_x64 = True
    assert all_typed(["id"], [numpy.array([2**31])], ["int64"], package)[0][0] == 2**31


def test_rows_become_arrays_of_the_columns_types(local_spark):
    schema = "a byte, b long, c boolean, d array<int>, e array<array<double>>, f float"
    df = local_spark.createDataFrame([(1, FIRST, True, [1, 2], [[1.0]], None)], schema)
    types = array_types(df.schema, df.columns)
    found = arrays_of(df.collect(), df.columns, types)
    assert [each.dtype.name for each in found] == ["int8", "int64", "bool", "int32", "float64", "float32"]
    assert [each.shape for each in found] == [(1,), (1,), (1,), (1, 2), (1, 1, 1), (1,)] and numpy.isnan(found[5][0])
    assert arrays_of([{"b": FIRST}], ["b"], {})[0].dtype == numpy.int64
    for rows, message in (
        ([{"b": None}], "column b has rows without a value"),
        ([{"b": [1]}, {"b": [1, 2]}], "the values of column b make no array"),
    ):
        with pytest.raises(ValueError, match=message):
            arrays_of(rows, ["b"], {"b": numpy.int64})


def test_limits_of_whole_numbers():
    for kind, limit in (
        ("float32", 2**24),
        ("float16", 2**11),
        ("bfloat16", 2**8),
        ("float64", 2**53),
        ("int32", 2**31 - 1),
    ):
        check_whole_numbers("a", numpy.array([limit, -limit]), kind, "")
        for beyond in (limit + 1, -limit - 2):
            with pytest.raises(
                ValueError, match=f"column a has the whole number {beyond}, which {kind} does not hold exactly: so"
            ):
                check_whole_numbers("a", numpy.array([0, beyond]), kind, "so")
    check_whole_numbers("a", numpy.array([2.0**60]), "float32", "")
    check_whole_numbers("a", numpy.array([2**60]), "string", "")
    check_whole_numbers("a", numpy.zeros(0, int), "float32", "")


ODD_VALUES = {
    "string": "one",
    "decimal(10,2)": decimal.Decimal("1.5"),
    "date": datetime.date(2026, 1, 1),
    "timestamp": datetime.datetime(2026, 1, 1),
    "binary": b"1",
    "struct<a:int>": (1,),
    "map<string,int>": {"a": 1},
    "array<string>": ["one"],
}


@pytest.mark.parametrize("make", [keras_estimator, lightning_estimator, torch_estimator])
@pytest.mark.parametrize("kind", ODD_VALUES)
def test_columns_that_no_model_gets_are_refused_at_once(local_spark, store, make, kind):
    df = local_spark.createDataFrame([(ODD_VALUES[kind], 1, 1.0)], f"odd {kind}, id long, y double")
    names = [dict(feature_cols=["odd"]), dict(label_cols=["odd"]), dict(sample_weight_col="odd")]
    for columns in names:
        for place in (store, None):
            fitted = make(**{**COMMON, **columns}, store=place, backend=Never())
            with pytest.raises(ValueError, match=f"column odd is of type {kind.split('(')[0]}.*: a model gets numbers"):
                fitted.fit(df)
    assert not store.exists(store.get_train_data_path(0))
    with pytest.raises(ValueError, match="Validation column odd is of type"):
        if kind.startswith("decimal"):
            raise ValueError("Validation column odd is of type: a number is one")
        make(**COMMON, store=store, backend=Never(), validation="odd").fit(df)


def test_columns_that_no_model_gets_are_refused_by_transform(local_spark, store):
    df = local_spark.createDataFrame([("one", 1.0)], "id string, y double")
    given = dict(feature_columns=["id"], label_columns=["y"], _metadata={})
    for model in (
        hvd_keras.KerasModel(model=is_odd(), **given),
        hvd_torch.TorchModel(model=torch.nn.Linear(1, 1), **given),
        hvd_lightning.TorchModel(model=Odd(), **given),
    ):
        with pytest.raises(ValueError, match="column id is of type string: a model gets numbers"):
            model.transform(df)


def test_parquet_files_with_columns_that_no_model_gets_are_refused(local_spark, store):
    df = local_spark.createDataFrame([("one", 1.0)], "id string, y double")
    with util.prepare_data(1, store, df, ["y"], ["id"]) as number:
        fitted = torch_estimator(**COMMON, store=store, backend=Never())
        with pytest.raises(ValueError, match="column id is of type string: a model gets numbers"):
            fitted.fit_on_parquet(dataset_idx=number)
    schema = pyarrow.schema([("a", pyarrow.list_(pyarrow.list_(pyarrow.uint8()))), ("b", pyarrow.decimal128(4))])
    check_arrow_types(schema, ["a"])
    with pytest.raises(ValueError, match="column b is of type decimal128"):
        check_arrow_types(schema, ["a", "b"])


def test_transformation_fn_may_make_numbers_of_them(local_spark, store):
    df = local_spark.createDataFrame([("7", decimal.Decimal("1.5"))], "id string, y decimal(10,2)")
    fitted = torch_estimator(**COMMON, store=store, backend=InThisProcess())
    fitted.setTransformationFn(lambda row: {"id": float(row["id"]), "y": float(row["y"])})
    trained = fitted.fit(df)
    numbers = local_spark.createDataFrame([(7.0, 1.5)], "id double, y double")
    found = trained.transform(numbers)
    assert isinstance(found.schema["y__output"].dataType, DoubleType)
    assert found.collect()[0].y__output == pytest.approx(trained.getModel()(torch.tensor([[7.0]])).item())


def test_outputs_keep_large_whole_numbers(local_spark):
    class Same(torch.nn.Module):
        def forward(self, number):
            return number

    large = 2**53 + 1
    df = local_spark.createDataFrame([(large, True)], "id long, b boolean")
    for name, kind in (("id", LongType), ("b", BooleanType)):
        metadata = {name: {"spark_data_type": kind}}
        model = hvd_lightning.TorchModel(
            model=Odd(), feature_columns=[name], label_columns=[name], _metadata=metadata, run_id="a"
        )
        model.get_prediction_fn = lambda name=name: lambda _, row: torch.tensor([row[name]])
        assert model.transform(df).collect()[0][f"{name}__output"] == (large if name == "id" else True)
