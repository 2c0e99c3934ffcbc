"""Large models: saved, they are files of their own, which do not pass through the memory of Spark's JVM; tasks get them in pieces."""

import base64
import json

import cloudpickle
import pytest
import torch
from pyspark.sql.types import DoubleType

import horovod.spark.torch as hvd_spark
from horovod.spark.common import _outputs, serialization


def saved_parameters(folder):
    (part,) = (folder / "metadata").glob("part-*")
    return json.loads(part.read_text())["paramMap"]


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_large_values_are_in_files_of_their_own(local_spark, tmp_path, form):
    folder = tmp_path / "my größe%20"
    model = torch.nn.Linear(1, 1 << 16)
    history = [{"epoch": number} for number in range(3)]
    saved = hvd_spark.TorchModel(model=model, history=history, feature_columns=["x" * 100_000], label_columns=["y"])
    saved.save(form.format(folder))
    parameters = saved_parameters(folder)
    assert all(isinstance(parameters[name], dict) for name in ("model", "feature_columns"))
    assert isinstance(parameters["history"], str) and len(json.dumps(parameters)) < 10_000
    assert sum(each.stat().st_size for each in (folder / "values").iterdir()) > 4 * (1 << 17)
    loaded = hvd_spark.TorchModel.load(form.format(folder))
    assert torch.equal(loaded.getModel().weight, model.weight)
    assert (loaded.getHistory(), loaded.getFeatureColumns()) == (history, ["x" * 100_000])
    with pytest.raises(Exception, match="already exists"):
        saved.save(form.format(folder))
    smaller = saved.copy().setModel(torch.nn.Linear(1, 1))
    smaller.write().overwrite().save(form.format(folder))
    assert hvd_spark.TorchModel.load(form.format(folder)).getModel().weight.shape == (1, 1)


def test_a_model_reaches_the_tasks_in_pieces(local_spark, monkeypatch):
    monkeypatch.setattr(_outputs, "_PIECE", 1 << 14)
    context, sizes = local_spark.sparkContext, []
    broadcast = type(context).broadcast
    monkeypatch.setattr(
        type(context), "broadcast", lambda self, value: sizes.append(len(value)) or broadcast(self, value)
    )
    df = local_spark.createDataFrame([(1.0, 1.0), (2.0, 2.0)], "x double, y double")
    model = torch.nn.Sequential(torch.nn.Linear(1, 1 << 16), torch.nn.Linear(1 << 16, 1))
    metadata = {"y": {"spark_data_type": DoubleType}}
    given = dict(feature_columns=["x"], label_columns=["y"], input_shapes=[[-1, 1]], _metadata=metadata)
    found = hvd_spark.TorchModel(model=model, **given).transform(df).orderBy("x").collect()
    with torch.no_grad():
        expected = model(torch.tensor([[1.0], [2.0]])).flatten().tolist()
    assert [row.y__output for row in found] == pytest.approx(expected, rel=1e-3)
    assert len(sizes) > 16 and max(sizes) <= 1 << 14


def test_what_was_saved_as_text_is_loaded(local_spark, tmp_path, monkeypatch):
    """The first version saved models in this way."""
    model = hvd_spark.TorchModel(model=torch.nn.Linear(1, 1 << 16))
    with monkeypatch.context() as before:
        before.setattr(serialization, "_LARGE", 1 << 40)
        model.save(str(tmp_path / "model"))
    text = saved_parameters(tmp_path / "model")["model"]
    assert torch.equal(cloudpickle.loads(base64.b64decode(text)).weight, model.getModel().weight)
    assert not (tmp_path / "model" / "values").exists()
    loaded = hvd_spark.TorchModel.load(str(tmp_path / "model"))
    assert torch.equal(loaded.getModel().weight, model.getModel().weight)


def test_subclasses_elsewhere_find_the_names_of_horovod(local_spark, tmp_path):
    from horovod.spark.common.estimator import HorovodModel
    from horovod.spark.common.serialization import HorovodParamsReader, HorovodParamsWriter
    from horovod.spark.torch import estimator

    class Own(HorovodModel, estimator.TorchEstimatorParamsReadable, estimator.TorchEstimatorParamsWritable):
        def _transform(self, df):
            return df

    assert isinstance(Own.read(), estimator.TorchEstimatorParamsReader)
    assert isinstance(Own().write(), estimator.TorchEstimatorParamsWriter)
    model = hvd_spark.TorchModel(model=torch.nn.Linear(1, 1), run_id="one")
    HorovodParamsWriter(model).save(str(tmp_path / "model"))
    assert HorovodParamsReader(hvd_spark.TorchModel).load(str(tmp_path / "model")).getRunId() == "one"
