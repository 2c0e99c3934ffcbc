"""JAX's arrays on the GPU."""

import importlib.util
import sys

import pytest


def test_arrays_on_the_gpu(horovodrun, job):
    if importlib.util.find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    result = horovodrun.run(
        "-np", 2, "-x", "XLA_PYTHON_CLIENT_PREALLOCATE=false", sys.executable, job("jax_arrays.py"), timeout=75
    )
    assert result.returncode == 0, result.stdout + result.stderr
    if "JAX sees no GPU" in result.stdout:
        pytest.skip("this JAX sees no GPU")
    assert result.stdout.count("all as on the host") == 2
