"""The job that checks JAX on a GPU (tests/gpu/jobs/jax_arrays.py), on CPUs: where there is no GPU, it shows at least that the job is right."""

import json
import sys
from pathlib import Path

JOB = Path(__file__).resolve().parents[1] / "gpu" / "jobs" / "jax_arrays.py"


def test_job_passes_on_cpus(horovodrun):
    result = horovodrun.run("-np", "2", "-x", "JAX_ARRAYS_PATH=cpu", sys.executable, JOB, timeout=240)
    checks = [json.loads(line[line.index("{") :]) for line in result.stdout.splitlines() if '{"check"' in line]
    assert len(checks) == 12, result.stdout + result.stderr
    for each in checks:
        assert not each["errors"], each
    assert result.returncode == 0, result.stderr
