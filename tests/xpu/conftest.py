"""Compiles the simulated device, with the headers of the torch that runs these tests; it is kept in .dev/xpu."""

import hashlib
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))

from launcher import Launcher

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SOURCE = HERE / "simulated_xpu.cc"


def compiled():
    torch = Path(importlib.util.find_spec("torch").origin).parent
    assert (torch / "include/ATen/ATen.h").exists(), "this torch comes without headers: tools/setup --torch pip"
    version = importlib.metadata.version("torch").encode()
    library = ROOT / ".dev" / "xpu" / f"{hashlib.sha256(SOURCE.read_bytes() + version).hexdigest()}.so"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        unfinished = library.with_suffix(f".{os.getpid()}")
        flags = ["-std=c++20", "-O0", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", "-lc10", "-ltorch_cpu"]
        command = ["g++", SOURCE, "-o", unfinished, "-isystem", torch / "include", "-L", torch / "lib", *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        unfinished.rename(library)
    return library


@pytest.fixture(scope="session")
def device():
    """The environment of a job that has the device, by the stand-in for intel_extension_for_pytorch."""
    path = f"{HERE}:{os.environ['PYTHONPATH']}"
    return {"HOROVOD_TEST_XPU": str(compiled()), "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


@pytest.fixture
def horovodrun(tmp_path):
    launcher = Launcher(tmp_path)
    yield launcher
    launcher.close()
