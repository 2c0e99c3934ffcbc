"""What Horovod has and this package lacks: imports say so in a line. Runs in one process."""

import importlib
import importlib.util
import subprocess
import sys

import pytest

import horovod

HERE = "there are horovod.torch"
MISSING = {
    "horovod.spark": "does not run on Spark; " + HERE,
    "horovod.spark.torch": "does not run on Spark; " + HERE,
    "horovod.ray": "does not run on Ray; " + HERE,
    "horovod.data": "has no data loaders; torch.utils.data",
    "horovod.runner.mpi_run": "has no MPI; horovod.run and horovodrun",
    "horovod.runner.js_run": "has no jsrun; horovod.run and horovodrun",
    "horovod.runner.http.http_server": "has no HTTP server; its rendezvous is gRPC",
    "horovod.runner.elastic.constants": "has no elastic driver in Python; horovodrun's flags",
    "horovod.runner.gloo_run": "has a launcher that is no Python; horovod.run and horovodrun",
}


@pytest.mark.parametrize("module", MISSING)
def test_import_says_in_a_line_what_is_missing(module):
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module(module)
    text = str(caught.value)
    # An outer package may be the first that is missing.
    assert text.startswith("horovod.") and "this version of Horovod " + MISSING[module] in text
    assert "\n" not in text


def test_from_horovod_import_says_so_too():
    for name in ("ray", "spark"):
        with pytest.raises(ImportError, match="this version of Horovod does not"):
            exec("from horovod import " + name)


@pytest.mark.parametrize("module", ["spark", "ray", "data"])
def test_who_asks_whether_it_is_there_is_told_no(module):
    assert importlib.util.find_spec("horovod." + module) is None
    assert not hasattr(horovod, module)


def test_the_service_of_tf_data_is_missing():
    code = "import horovod, sys, types; parent = types.ModuleType('horovod.tensorflow'); parent.__path__ = []; "
    code += "sys.modules['horovod.tensorflow'] = parent; from horovod.tensorflow.data.compute_service import tf_data_service"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: horovod.tensorflow.data: this version of Horovod has no tf.data service; "
        "dataset.shard(hvd.size(), hvd.rank()) gives each rank its own part"
    )


@pytest.mark.parametrize("version, text", [(None, "import of tensorflow halted"), ("2.12.1", "this is 2.12.1")])
def test_tensorflow_is_missing_or_too_old(tmp_path, version, text):
    code = "import horovod.tensorflow"
    if version is None:
        code = "import sys; sys.modules['tensorflow'] = None; " + code
    else:
        (tmp_path / "tensorflow.py").write_text(f"__version__ = {version!r}")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: horovod.tensorflow needs TensorFlow 2.13 or newer") and text in last


@pytest.mark.parametrize(
    "missing, text",
    [
        ("keras", "Keras 2.13 or newer: pip install keras (import of keras halted; None in sys.modules)"),
        ("torch", "the backend that KERAS_BACKEND names (import of torch halted; None in sys.modules)"),
    ],
)
def test_keras_or_its_backend_is_missing(tmp_path, missing, text):
    (tmp_path / "keras.py").write_text("import torch")
    code = f"import sys; sys.modules[{missing!r}] = None; import horovod.keras"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stderr.splitlines()[-1] == "ImportError: horovod.keras needs " + text


def test_keras_has_another_backend(tmp_path):
    (tmp_path / "keras.py").write_text(
        """
import types

__version__ = "3.0.0"
backend = types.SimpleNamespace(backend=lambda: "numpy")
callbacks = types.SimpleNamespace(Callback=object, ModelCheckpoint=object)
Model = type("Model", (), {"__module__": "keras"})
"""
    )
    code = "import horovod.keras"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: Horovod works with Keras on tensorflow, jax, torch, not on numpy: "
        "set KERAS_BACKEND to one of them."
    )


@pytest.mark.parametrize(
    "mxnet, text",
    [
        (None, "horovod.mxnet needs MXNet 1.9.1 (import of mxnet halted; None in sys.modules): "),
        ("__version__ = '2.0.0'", "horovod.mxnet needs MXNet 1.9.1, this one is 2.0.0: "),
        ("", "horovod.mxnet needs MXNet 1.9.1, this one is unknown: "),
        ("import sys; sys.nonsense", "horovod.mxnet needs MXNet 1.9.1 (module 'sys' has no attribute 'nonsense'): "),
    ],
)
def test_mxnet_is_missing_or_another_one(tmp_path, mxnet, text):
    code = "import horovod.mxnet"
    if mxnet is None:
        code = "import sys; sys.modules['mxnet'] = None; " + code
    else:
        (tmp_path / "mxnet.py").write_text(mxnet)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stderr.splitlines()[-1] == f"ImportError: {text}pip install mxnet==1.9.1 'numpy<1.24'"


def test_other_modules_are_missing_as_ever():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'horovod\.nonsense'"):
        importlib.import_module("horovod.nonsense")


def test_a_package_that_is_there_is_found(tmp_path):
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "__init__.py").write_text("here = True")
    code = "import horovod; horovod.__path__.append({!r}); import horovod.ray as r; assert r.here"
    subprocess.run([sys.executable, "-c", code.format(str(tmp_path))], check=True, timeout=60)
