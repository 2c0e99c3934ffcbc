"""JAX's arrays on the GPU, and its programs' calls."""

import importlib.util
import sys

import pytest

HOST_WAYS = {"ranks that share the GPU": {"ONE_HOST": "1"}, "HOST": {"HOROVOD_GPU_OPERATIONS": "HOST"}}


def test_calls_of_xla(checks):
    checks("xla_calls.py", 2, 40, env={"XLA_CALLS_PATH": "nccl", "HOROVOD_GPU_OPERATIONS": "NCCL_ONLY"})


@pytest.mark.parametrize("way", HOST_WAYS)
def test_calls_of_xla_through_host_memory(checks, is_simulated, way):
    if not is_simulated:
        pytest.skip("test_arrays has it, with JAX itself")
    checks("xla_calls.py", 2, 40, env={"XLA_CALLS_PATH": "host", **HOST_WAYS[way]})


def test_failure_of_a_rank_within_a_call(horovodrun, job):
    result = horovodrun.run("-np", 2, sys.executable, job("xla_failure.py"), timeout=40)
    assert "the error reached the caller" in result.stdout, result.stdout + result.stderr


@pytest.mark.parametrize("path, operations", [("nccl", "NCCL_ONLY"), ("host", "NCCL")])
def test_arrays(checks, path, operations):
    if importlib.util.find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    variables = {
        "JAX_ARRAYS_PATH": path,
        "HOROVOD_GPU_OPERATIONS": operations,
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }
    result = checks("jax_arrays.py", 2, 75, env=variables)
    if "JAX sees no GPU" in result.stdout:
        pytest.skip("this JAX sees no GPU")
