"""torch, numpy and horovod in every order; what importing horovod costs. One process each, without
launcher."""

import itertools
import subprocess
import sys

import pytest

_USE = """
import torch, numpy
import horovod.torch as hvd
hvd.init()
assert hvd.allreduce(torch.ones(3), op=hvd.Sum).tolist() == [hvd.size()] * 3
assert numpy.ones(3).sum() == 3 and torch.ones(3).numpy().sum() == 3
hvd.shutdown()
"""


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("order", list(itertools.permutations(["torch", "numpy", "horovod.torch"])), ids="-".join)
def test_order(order):
    run("".join(f"import {name}\n" for name in order) + _USE)


def test_library_before_torch():
    run("import horovod._ffi\n" + _USE)


def test_import_of_horovod_alone_imports_no_framework():
    code = "import horovod, sys\nprint([m for m in ('torch', 'numpy', 'cloudpickle') if m in sys.modules])"
    assert run(code).strip() == "[]"


def test_numpy_needs_no_framework():
    code = (
        "import sys; sys.modules['torch'] = None  # an import of it fails\n"
        "import numpy, horovod.numpy as hvd; hvd.init()\n"
        "hvd.elastic.State(a=numpy.ones(2), b=1).commit()\n"
        "print(hvd.allreduce(numpy.ones(2)).tolist(), hvd.broadcast_object(3))"
    )
    assert run(code).strip() == "[1.0, 1.0] 3"


def test_frameworks_are_attributes():
    """PyTorch Lightning 1.5 looks for Horovod through them."""
    assert run("import horovod\nprint(hasattr(horovod, 'torch'), hasattr(horovod, 'x'))") == ("True False\n")
    broken = "import os; os.environ['HOROVOD_LIBRARY'] = '/nowhere'\n"
    assert run(broken + "import horovod\nprint(hasattr(horovod, 'torch'))") == "False\n"


def test_missing_library_is_explained():
    code = (
        "import os; os.environ['HOROVOD_LIBRARY'] = '/nowhere/libhvd.so'\n"
        "try:\n  import horovod.torch\n"
        "except ImportError as error:\n  print(error)"
    )
    assert "/nowhere/libhvd.so" in run(code)


def test_exit_status_is_the_scripts_own():
    """An exception or sys.exit amid operations in flight must end the process in its own way."""
    start = "import sys, torch, horovod.torch as hvd\nhvd.init()\nhandle = hvd.allreduce_async(torch.ones(1000000))\n"
    for end, status in (
        ("raise ValueError('x')", 1),
        ("sys.exit(3)", 3),
        ("sys.exit()", 0),
        ("", 0),
    ):
        done = subprocess.run([sys.executable, "-c", start + end], capture_output=True, text=True)
        assert done.returncode == status, done.stderr
        assert ("ValueError: x" in done.stderr) == (status == 1)
