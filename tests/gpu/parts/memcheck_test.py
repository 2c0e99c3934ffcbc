"""compute-sanitizer's memcheck over a short job."""

import shutil
import sys
from pathlib import Path

import pytest

SANITIZER = shutil.which("compute-sanitizer") or shutil.which(
    "compute-sanitizer", path="/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer"
)


def test_short_job_under_memcheck(horovodrun, job, tmp_path):
    if SANITIZER is None:
        pytest.skip("compute-sanitizer is not installed")
    log = tmp_path / "memcheck-%p"
    # Not the driver's calls that fail: torch and NCCL ask in this way what the driver has.
    command = [SANITIZER, "--tool", "memcheck", "--report-api-errors", "no", "--error-exitcode", "99"]
    # NCCL starts slowly under it: each of its kernels is instrumented first.
    result = horovodrun.run(
        *("-np", 2, "-x", "HOROVOD_GLOO_TIMEOUT_SECONDS=85", *command, "--log-file", log),
        *(sys.executable, job("short.py")),
        timeout=85,
    )
    reports = {path.name: path.read_text() for path in Path(tmp_path).glob("memcheck-*")}
    if any("Device not supported" in text for text in reports.values()):
        pytest.skip("compute-sanitizer does not support this device")
    assert result.returncode == 0, result.stdout + result.stderr + "\n".join(reports.values())
    assert len(reports) == 2 and all("ERROR SUMMARY: 0 errors" in text for text in reports.values()), reports
