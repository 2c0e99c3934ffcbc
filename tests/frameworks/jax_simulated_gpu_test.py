"""Arrays of JAX on the simulated GPU, outside of jit. What is within jit is tests/gpu/jobs/xla_calls.py, which needs no JAX."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TORCH = ROOT / ".dev" / "venv-pip" / "bin" / "python"  # has the torch that the simulated GPU is compiled with


def test_no_copy_between_device_and_host(horovodrun, tmp_path):
    if not TORCH.exists():
        pytest.skip("tools/setup --torch pip makes what compiles the simulated GPU")
    built = subprocess.run([TORCH, ROOT / "tests/gpu/simulated/build.py"], capture_output=True, text=True, check=True)
    variables = dict(line.split("=", 1) for line in built.stdout.splitlines())
    variables = {"LD_LIBRARY_PATH": variables["LD_LIBRARY_PATH"], "SIMULATED_GPU_STATE": str(tmp_path)}
    job = ROOT / "tests/frameworks/jobs/jax_simulated_gpu.py"
    result = horovodrun.run(
        "-np", "2", "-x", "HOROVOD_GPU_OPERATIONS=NCCL_ONLY", sys.executable, job, env=variables, timeout=120
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("no copies") == 2
