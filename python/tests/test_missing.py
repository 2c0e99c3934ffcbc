"""What Horovod has and this package lacks: imports say so in a line. Runs in one process."""

import importlib
import importlib.util
import os
import subprocess
import sys

import pytest

import horovod

MISSING = {
    "horovod.runner.mpi_run": "has no MPI; horovod.run and horovodrun",
    "horovod.runner.js_run": "has no jsrun; horovod.run and horovodrun",
    "horovod.runner.http.http_server": "has no HTTP server and no RendezvousServer; horovod.rendezvous embeds the rendezvous",
    "horovod.runner.elastic.constants": "has no elastic driver in Python; horovodrun's flags",
    "horovod.runner.gloo_run": "has a launcher that is not written in Python; horovod.run and horovodrun",
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
    with pytest.raises(ImportError, match="this version of Horovod has no MPI"):
        exec("from horovod.runner import mpi_run")


def test_names_of_the_frameworks_packages_are_explained():
    for name in ("init", "rank", "DistributedOptimizer"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}': `import horovod.torch as hvd`"):
            getattr(horovod, name)
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        _ = horovod.nonsense


def test_their_explanation_has_the_scripts_frames_only():
    code = "import horovod as hvd; hvd.init()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr.count("  File ") == 1 and "`import horovod.torch as hvd`" in done.stderr, done.stderr


def test_who_asks_whether_it_is_there_is_told_no():
    assert importlib.util.find_spec("horovod.runner.mpi_run") is None
    assert not hasattr(horovod.runner, "mpi_run")


def test_the_service_of_tf_data_is_missing():
    code = "import horovod, sys, types; parent = types.ModuleType('horovod.tensorflow'); parent.__path__ = []; "
    code += "sys.modules['horovod.tensorflow'] = parent; from horovod.tensorflow.data.compute_service import tf_data_service"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: horovod.tensorflow.data: this version of Horovod has no tf.data service; "
        "dataset.shard(hvd.size(), hvd.rank()) gives each rank its own part"
    )


def import_fails(module, tmp_path, before="", **environment):
    """The text of the ImportError of an import in a separate process, which shows nothing else."""
    others = {name: value for name, value in os.environ.items() if name != "KERAS_BACKEND"}
    done = subprocess.run(
        [sys.executable, "-c", f"{before}\nimport {module}"], env={**others, **environment}, cwd=tmp_path,
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    kind, _, text = done.stderr.splitlines()[-1].partition(": ")
    assert kind == "ImportError" and done.stderr.count("Traceback") == 1, done.stderr
    assert done.stderr.count("  File ") == 1, done.stderr  # only the script's
    return text


def without(module):
    return f"import sys; sys.modules[{module!r}] = None"


def halted(module):
    return f"(import of {module} halted; None in sys.modules)"


MXNET = "horovod.mxnet needs MXNet 1.9.1"
MXNET_INSTALL = "pip install mxnet==1.9.1 'numpy<1.24'"
NEEDED = {
    "horovod.torch": ("torch", "horovod.torch needs PyTorch: pip install torch"),
    "horovod.torch.elastic": ("torch", "horovod.torch needs PyTorch: pip install torch"),
    "horovod.numpy": ("numpy", "horovod.numpy needs numpy: pip install numpy"),
    "horovod.jax": ("jax", "horovod.jax needs JAX 0.4.31 or newer: pip install jax"),
    "horovod.keras": ("keras", "horovod.keras needs Keras 2.13 or newer: pip install keras"),
    "horovod.lightning": (
        "torch",
        "horovod.lightning needs PyTorch Lightning: pip install lightning, or pytorch-lightning",
    ),
    "horovod.spark": ("pyspark", "horovod.spark needs Spark 3.4 or later: pip install pyspark"),
    "horovod.dask": ("distributed", "horovod.dask needs Dask's scheduler: pip install distributed"),
    "horovod.ray": ("ray", "horovod.ray needs Ray 2.3 or later: pip install ray"),
    "horovod.mxnet": ("mxnet", f"{MXNET}: {MXNET_INSTALL}"),
    "horovod.tensorflow": ("tensorflow", "horovod.tensorflow needs TensorFlow 2.13 or newer: pip install tensorflow"),
    "horovod.tensorflow.keras": (
        "tensorflow",
        "horovod.tensorflow needs TensorFlow 2.13 or newer: pip install tensorflow",
    ),
}


@pytest.mark.parametrize("module", NEEDED)
def test_a_framework_is_missing(tmp_path, module):
    framework, text = NEEDED[module]
    # Frameworks bring numpy: the one that is named is what to install.
    before = without(framework) + "; sys.modules['numpy'] = None"
    assert import_fails(module, tmp_path, before) == f"{text} {halted(framework)}"


def test_tensorflow_is_too_old(tmp_path):
    (tmp_path / "tensorflow.py").write_text("__version__ = '2.12.1'")
    assert import_fails("horovod.tensorflow", tmp_path) == (
        "horovod.tensorflow needs TensorFlow 2.13 or newer, this is 2.12.1: pip install --upgrade tensorflow"
    )


BACKEND = "horovod.keras needs Keras's backend. KERAS_BACKEND is "


@pytest.mark.parametrize(
    "source, backend, text",
    [
        (
            "import tensorflow",
            "",
            BACKEND + "not set, so Keras uses tensorflow, which can't be imported "
            f"{halted('tensorflow')}: pip install tensorflow, or set KERAS_BACKEND to jax or torch",
        ),
        (
            "import torch",
            "torch",
            BACKEND + f"torch, which can't be imported {halted('torch')}: "
            "pip install torch, or set KERAS_BACKEND to tensorflow or jax",
        ),
        ("import nonsense", "", "horovod.keras can't import keras (No module named 'nonsense')"),
        (
            "import nonsense",
            "openvino",
            "Horovod works with Keras on tensorflow, jax, torch, not on openvino: set KERAS_BACKEND to one of them.",
        ),
        (
            "raise ValueError('Unable to import backend : jaxx')",
            "jaxx",
            "Horovod works with Keras on tensorflow, jax, torch, not on jaxx: set KERAS_BACKEND to one of them.",
        ),
    ],
)
def test_the_backend_of_keras_is_missing_or_unknown(tmp_path, source, backend, text):
    (tmp_path / "keras.py").write_text(source)
    before = f"{without('torch')}; {without('tensorflow')}"
    assert import_fails("horovod.keras", tmp_path, before, KERAS_BACKEND=backend) == text


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
    assert import_fails("horovod.keras", tmp_path) == (
        "Horovod works with Keras on tensorflow, jax, torch, not on numpy: set KERAS_BACKEND to one of them."
    )


@pytest.mark.parametrize(
    "mxnet, text",
    [
        ("__version__ = '2.0.0'", f"{MXNET}, this one is 2.0.0: {MXNET_INSTALL}"),
        ("", f"{MXNET}, this one is unknown: {MXNET_INSTALL}"),
        ("import sys; sys.nonsense", f"{MXNET}: {MXNET_INSTALL} (module 'sys' has no attribute 'nonsense')"),
        ("raise ImportError('one\\nof two lines')", f"{MXNET}: {MXNET_INSTALL} (one)"),
    ],
)
def test_another_mxnet_or_one_that_does_not_work(tmp_path, mxnet, text):
    (tmp_path / "mxnet.py").write_text(mxnet)
    assert import_fails("horovod.mxnet", tmp_path) == text


def test_other_modules_are_missing_as_ever():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'horovod\.nonsense'"):
        importlib.import_module("horovod.nonsense")


def test_a_package_that_is_there_is_found(tmp_path):
    (tmp_path / "js_run.py").write_text("here = True")
    code = "import horovod.runner; horovod.runner.__path__.append({!r}); from horovod.runner import js_run; assert js_run.here"
    subprocess.run([sys.executable, "-c", code.format(str(tmp_path))], check=True, timeout=60)
