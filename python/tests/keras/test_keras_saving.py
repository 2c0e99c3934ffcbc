"""Models that are saved with a distributed optimizer, and loaded with and without Horovod."""

import os
import subprocess
import sys

import numpy
import pytest

from kerases import (
    BATCH,
    JIT,
    KINDS,
    NAME,
    assert_weights,
    batches,
    fit,
    hvd,
    keras,
    model_of,
    optimizers,
    sgd,
    variables_of,
)

FORMATS = ["model.keras", "model.h5"]
# Keras 3 itself does not load an optimizer from HDF5 so that it can go on; nor does Keras 2 load a legacy one from the
# other format: 2.13 raises AttributeError, later ones begin without slots.
WITH_STATE = [("new", "model.keras"), *([("new", "model.h5"), ("legacy", "model.h5")] if NAME == "keras2" else [])]

# Prints the class of the optimizer, its number of steps, and whether Horovod has been imported.
_LOADER = """
import sys
import {package} as keras
for path in sys.argv[1:]:
    model = keras.models.load_model(path)
    optimizer = model.optimizer
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    print(type(optimizer).__name__, type(inner).__name__, int(inner.iterations), "horovod" in sys.modules)
"""


@pytest.fixture
def folder(tmp_path):
    """The same on all ranks."""
    from horovod.common.objects import broadcast_object

    return broadcast_object(str(tmp_path), 0)


def trained(optimizer):
    model = model_of()
    model.compile(optimizer, keras.losses.MeanSquaredError(), jit_compile=JIT)  # HDF5 can not load "mse" in Keras 3
    fit(model, batches(2)[1], BATCH, epochs=1)
    return model


def saved(model, folder, name):
    path = os.path.join(folder, name)
    if hvd.rank() == 0:
        model.save(path)
    hvd.allreduce(0.0)  # it is there
    return path


@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file")
@pytest.mark.parametrize("kind, name", WITH_STATE)
def test_load_model_gives_a_distributed_optimizer_with_its_slots(kind, name, folder):
    model = trained(hvd.DistributedOptimizer(optimizers(kind).Adam(0.01)))
    loaded = hvd.load_model(saved(model, folder, name), legacy_opts=kind == "legacy")
    optimizer = loaded.optimizer
    assert hasattr(optimizer, "register_local_var") and type(optimizer).__name__ == "Adam"
    assert len(variables_of(optimizer)) == len(variables_of(model.optimizer))
    for own, other in zip(variables_of(optimizer), variables_of(model.optimizer)):
        numpy.testing.assert_array_equal(own, other)
    # Both continue in the same way.
    for each in (model, loaded):
        fit(each, batches(2)[1], BATCH, epochs=1)
    assert_weights(loaded, model.get_weights(), rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file")
@pytest.mark.parametrize("kind", KINDS)
def test_it_can_be_loaded_without_horovod(kind, folder):
    model = trained(hvd.DistributedOptimizer(sgd(kind)))
    formats = FORMATS[1:] if kind == "legacy" else FORMATS  # see WITH_STATE
    paths = [saved(model, folder, name) for name in formats]
    if hvd.rank() == 0:
        package = keras.__name__.split(".")[0]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HOROVOD_")}
        command = [sys.executable, "-c", _LOADER.format(package=package), *paths]
        printed = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
        assert printed.splitlines() == [f"SGD SGD {2} False"] * len(paths)
    hvd.allreduce(0.0)


def test_a_model_that_was_saved_without_horovod(folder):
    loaded = hvd.load_model(saved(trained(sgd()), folder, "plain.keras"))
    assert hasattr(loaded.optimizer, "register_local_var")


def test_custom_optimizers_and_objects(folder):
    class Own(optimizers("new").SGD):
        pass

    def own_loss(wanted, got):
        return ((wanted - got) ** 2).__abs__()

    model = model_of()
    model.compile(hvd.DistributedOptimizer(Own(0.1)), own_loss, jit_compile=JIT)
    fit(model, batches(2)[1], BATCH, epochs=1)
    path = saved(model, folder, "own.keras")
    loaded = hvd.load_model(path, custom_optimizers=[Own], custom_objects={"own_loss": own_loss})
    assert isinstance(loaded.optimizer, Own) and hasattr(loaded.optimizer, "register_local_var")


def test_compression_of_a_loaded_model(folder):
    path = saved(trained(sgd()), folder, "plain.keras")
    loaded = hvd.load_model(path, compression=hvd.Compression.fp16)
    assert loaded.optimizer._hvd.settings.compression is hvd.Compression.fp16


@pytest.mark.only("keras3")
def test_a_loaded_optimizer_averages_the_steps_that_it_accumulates(folder):
    path = saved(trained(hvd.DistributedOptimizer(sgd(), backward_passes_per_step=2)), folder, "passes.keras")
    with pytest.warns(UserWarning, match="gradient_accumulation_steps=2: as Keras does, it averages"):
        loaded = hvd.load_model(path)
    assert loaded.optimizer.gradient_accumulation_steps == 2


def test_a_loss_scale_is_loaded_with_its_state(folder, float16):
    model = trained(hvd.DistributedOptimizer(sgd()))
    scaling = model.optimizer
    scale = scaling._loss_scale.current_loss_scale if NAME == "keras2" else scaling.dynamic_scale
    scale.assign(512.0)
    loaded = hvd.load_model(saved(model, folder, "scaled.keras"))
    optimizer = loaded.optimizer
    assert hasattr(optimizer.inner_optimizer, "register_local_var")
    if NAME == "keras3":  # Keras 2 does not write the scale
        assert float(optimizer.dynamic_scale) == 512.0
    fit(loaded, batches(2)[1], BATCH, epochs=1)


@pytest.mark.only("keras3")
def test_keras_3_has_no_legacy_optimizers():
    with pytest.raises(ValueError, match="Keras 3 has no legacy optimizers"):
        hvd.load_model("model.keras", legacy_opts=True)
