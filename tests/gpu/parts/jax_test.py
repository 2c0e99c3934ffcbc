"""JAX's arrays on the GPU."""

import importlib.util
import subprocess
import sys

import pytest


def devices_of_jax():
    script = "import jax; print(','.join(sorted({device.platform for device in jax.devices()})))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=50)
    return done.stdout.split("\n")[0]


def test_arrays_on_the_gpu(horovodrun, job):
    if importlib.util.find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    if "gpu" not in devices_of_jax() and "cuda" not in devices_of_jax():
        pytest.skip("this JAX sees no GPU")
    result = horovodrun.run(
        "-np", 2, "-x", "XLA_PYTHON_CLIENT_PREALLOCATE=false", sys.executable, job("jax_arrays.py"), timeout=55
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("all as on the host") == 2
