"""The estimator that trains Keras models: fits in a local session with Keras on torch, checkpoints, models, what is saved."""

import multiprocessing
import os
from types import SimpleNamespace

import numpy
import pytest
from pyspark.ml.linalg import DenseVector, VectorUDT
from pyspark.sql.types import FloatType

import horovod.spark.keras as hvd_spark
from horovod.spark.common import util
from horovod.spark.common.store import Store
from horovod.spark.keras._training import Batches
from in_this_process import InThisProcess
from spark_tables import table, vectors, xor

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras", reason="needs Keras")


def xor_model(outputs=1):
    keras.utils.set_random_seed(3)
    layers = [keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(outputs, activation="sigmoid")]
    return keras.Sequential([keras.Input([2]), *layers])


@pytest.fixture
def store(tmp_path):
    util.clear_training_cache()
    return Store.create(str(tmp_path / "store"))


def estimator(in_store, model=None, **more):
    given = dict(
        backend=InThisProcess(),
        store=in_store,
        model=model or xor_model(),
        optimizer=keras.optimizers.SGD(0.1),
        loss="binary_crossentropy",
        feature_cols=["features"],
        label_cols=["y"],
        batch_size=2,
        epochs=2,
        random_seed=1,
        verbose=0,
        partitions_per_process=1,
    )
    return hvd_spark.KerasEstimator(**{**given, **more})


def rate(model):
    return float(model.optimizer.learning_rate.numpy())


def test_two_processes_learn_xor(local_spark, store):
    more = dict(backend=None, num_proc=2, batch_size=4, epochs=60, metrics=["mae"])
    trained = estimator(store, optimizer=keras.optimizers.Adam(0.03), **more).fit(xor(local_spark, 8))
    history = trained.getHistory()
    assert len(history["loss"]) == 60 and history["loss"][-1] < 0.3 < history["loss"][0] and "mae" in history
    said = {(row.x1, row.x2): round(row.y__output) for row in trained.transform(xor(local_spark)).collect()}
    assert said == {(0, 0): 0, (0, 1): 1, (1, 0): 1, (1, 1): 0}
    assert rate(trained.getModel()) == pytest.approx(0.03)
    assert store.exists(f"{store.get_checkpoint_path(trained.getRunId())}/checkpoint.keras")


def test_images_of_several_classes(local_spark, store):
    rows = [[DenseVector([float(n % 3)] * 64), DenseVector(numpy.eye(3)[n % 3])] for n in range(12)]
    df = table(local_spark, rows, features="vector", label_vec="vector")
    model = keras.Sequential(
        [
            keras.Input([8, 8, 1]),
            keras.layers.Conv2D(4, 3, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(3, activation="softmax"),
        ]
    )
    more = dict(loss=keras.losses.categorical_crossentropy, metrics=["accuracy"], label_cols=["label_vec"])
    trained = estimator(store, model, **more).fit(df).setOutputCols(["label_prob"])
    found = trained.transform(df)
    assert isinstance(found.schema["label_prob"].dataType, VectorUDT)
    assert all(row.label_prob.toArray().sum() == pytest.approx(1, abs=1e-3) for row in found.collect())


def test_a_run_with_a_checkpoint_continues(local_spark, store, capfd):
    df = xor(local_spark, 4)
    first = estimator(store, run_id="run1", epochs=20, verbose=2, optimizer=keras.optimizers.Adam(0.05))
    loss = first.fit(df).getHistory()["loss"][-1]
    assert "Resuming" not in capfd.readouterr().out
    again = first.fit(df, {first.epochs: 1})
    assert "Resuming training from last checkpoint" in capfd.readouterr().out
    assert again.getHistory()["loss"][0] < loss + 0.05 < 0.7 and rate(again.getModel()) == pytest.approx(0.05)


def test_parquet_files_that_are_there_already(local_spark, store):
    df = xor(local_spark, 2)
    for validation in (None, "x1"):
        with util.prepare_data(1, store, df, ["y"], ["features"], validation, partitions_per_process=1) as number:
            for in_memory in (False, True):
                fitted = estimator(store, validation=validation, inmemory_cache_all=in_memory)
                trained = fitted.fit_on_parquet(dataset_idx=number)
                assert ("val_loss" in trained.getHistory()) == bool(validation)
    assert trained.transform(df).count() == 8


def test_the_checkpoint_callback_says_which_model_comes_back(local_spark, store, capfd):
    import horovod.keras as hvd

    class Worse(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                self.model.set_weights([numpy.full_like(weight, 9) for weight in self.model.get_weights()])

    best = hvd.callbacks.BestModelCheckpoint(monitor="loss")
    fitted = estimator(store, checkpoint_callback=best, callbacks=[Worse()], optimizer=keras.optimizers.SGD(0.0))
    weights = fitted.fit(xor(local_spark)).getModel().get_weights()
    assert not any((weight == 9).all() for weight in weights)
    fitted = estimator(store, callbacks=[Worse()], optimizer=keras.optimizers.SGD(0.0))
    assert all((weight == 9).all() for weight in fitted.fit(xor(local_spark)).getModel().get_weights())


def tell_start_method(logs):
    print("started by", multiprocessing.get_start_method(), flush=True)


def test_weights_of_rows_steps_and_environment(local_spark, store, capfd):
    rows = [[1.0, 0.0, 1.0], [1.0, 10.0, 0.0]]
    df = table(local_spark, rows, x="float", y="float", weight="float")
    model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
    backend = InThisProcess()
    fitted = estimator(
        store,
        model,
        backend=backend,
        loss="mse",
        feature_cols=["x"],
        sample_weight_col="weight",
        train_steps_per_epoch=40,
        backward_passes_per_step=2,
        backend_env={"A": "b"},
        mp_start_method="spawn",
        transformation_fn=lambda row: {**row, "x": row["x"] * 1},
        callbacks=[keras.callbacks.LambdaCallback(on_train_end=tell_start_method)],
    )
    trained = fitted.fit(df)
    assert "started by spawn" in capfd.readouterr().out
    assert backend.env == {"A": "b"}
    assert trained.getModel().predict(numpy.ones([1, 1]), verbose=0)[0, 0] == pytest.approx(0, abs=0.1)


def test_several_inputs_and_outputs_sparse_ones_too(local_spark, store):
    sparse, dense = keras.Input([2]), keras.Input([2])
    joined = keras.layers.Concatenate()([sparse, dense])
    model = keras.Model([sparse, dense], [keras.layers.Dense(1)(joined), keras.layers.Dense(2)(joined)])
    trained = estimator(
        store,
        model,
        feature_cols=["sparse", "dense"],
        label_cols=["float", "mixed"],
        loss=["mse", "mae"],
        loss_weights=[0.25, 0.75],
        compress_sparse_cols=True,
    ).fit(vectors(local_spark))
    df = trained.setOutputCols(["a", "b"]).transform(vectors(local_spark))
    assert [type(field.dataType) for field in df.schema.fields[-2:]] == [FloatType, VectorUDT]
    assert all(isinstance(row.a, float) and len(row.b) == 2 for row in df.collect())


def test_estimators_and_models_are_saved(local_spark, store, tmp_path):
    df = xor(local_spark)
    fitted = estimator(store, run_id="a")
    fitted.save(str(tmp_path / "estimator"))
    loaded = hvd_spark.KerasEstimator.load(str(tmp_path / "estimator"))
    assert (loaded.getRunId(), loaded.getStore(), loaded.getBackend()) == ("a", None, None)
    both = zip(loaded.getModel().get_weights(), fitted.getModel().get_weights())
    assert all((weights == others).all() for weights, others in both)
    trained = loaded.fit(df, {loaded.backend: InThisProcess(), loaded.store: store})
    trained.save(str(tmp_path / "model"))
    again = hvd_spark.KerasModel.load(str(tmp_path / "model"))
    rows = [sorted(row.y__output for row in model.transform(df).collect()) for model in (trained, again)]
    assert rows[0] == rows[1] and again.getHistory() == trained.getHistory()


def test_custom_objects(local_spark, store, tmp_path):
    class Doubled(keras.layers.Layer):
        def call(self, inputs):
            return inputs * 2

    model = keras.Sequential([keras.Input([2]), Doubled(), keras.layers.Dense(1)])
    trained = estimator(store, model, loss="mse", custom_objects={"Doubled": Doubled}).fit(xor(local_spark))
    assert trained.transform(xor(local_spark)).count() == 4
    trained.save(str(tmp_path / "model"))
    assert isinstance(hvd_spark.KerasModel.load(str(tmp_path / "model")).getModel().layers[0], keras.layers.Layer)


@pytest.mark.parametrize(
    "more, message",
    [
        (dict(loss=None), "loss is missing"),
        (dict(optimizer=None), "optimizer is missing"),
        (dict(model=object()), r"model has to be an instance of keras\.Model: Got object"),
        (dict(feature_cols=["features", "x1"]), "Feature column count 2 must equal model inputs count 1"),
    ],
)
def test_arguments_that_are_refused(local_spark, store, more, message):
    with pytest.raises(ValueError, match=message):
        estimator(store, **more).fit(xor(local_spark))


def test_shapes_of_a_model():
    given = hvd_spark.KerasEstimator(model=xor_model(2), tensorflow_dataset_prefetch_buffer_size=3)
    assert given.get_model_shapes() == ([[-1, 2]], [[-1, 2]])
    assert given.getTensorflowDatasetPrefetchBufferSize() == 3
    assert hvd_spark.KerasEstimator(model=keras.Sequential([keras.layers.Dense(1)])).get_model_shapes() == (None, None)


def test_batches_have_the_shapes_of_the_model():
    sparse = {"intermediate_format": "custom_sparse_format", "shape": 10}
    plan = SimpleNamespace(
        metadata={"col2": sparse},
        package=SimpleNamespace(floatx="float32"),
        features=["col1", "col2"],
        labels=["label1", "label2", "label3"],
        sample_weight="weight",
        label_shapes=None,
    )
    shapes_of = {"inputs": [(None, 1), (None, 2, 5)], "outputs": [(None, 4), (None, 2, 2), (None, 7)]}
    model = SimpleNamespace(
        **{kind: [SimpleNamespace(shape=shape) for shape in found] for kind, found in shapes_of.items()}
    )
    rows = {
        "col1": [3],
        "col2": [[3, 1, 3, 6, 10, 30, 60, 0, 0, 0, 0]],
        "label1": [[1, 2, 3, 4]],
        "label2": [[1, 2, 3, 4]],
        "label3": [5],
        "weight": [0.5],
    }
    batch = {name: numpy.array(values, numpy.float64) for name, values in rows.items()}
    inputs, labels, weights = next(Batches(plan, model).of([batch]))
    assert [values.tolist() for values in inputs] == [[[3]], [[[0, 10, 0, 30, 0], [0, 60, 0, 0, 0]]]]
    assert [values.tolist() for values in labels] == [[[1, 2, 3, 4]], [[[1, 2], [3, 4]]], [5]]
    assert [values.tolist() for values in weights] == [[0.5]] * 3 and inputs[0].dtype == numpy.float32
    plan.label_shapes, plan.sample_weight = [[-1, 2, 2], [-1, 4], [-1, 1]], None
    _, labels = next(Batches(plan, model).of([batch]))
    assert [values.shape for values in labels] == [(1, 2, 2), (1, 4), (1, 1)]
