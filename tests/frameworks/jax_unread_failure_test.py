"""A JAX program that fails after the end of the script, without an exception."""

import os
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

JOB = Path(__file__).resolve().parent / "jobs" / "leaves_first.py"


@pytest.mark.skipif(version("jax").startswith("0.4."), reason="this JAX returns when the program has ended")
@pytest.mark.parametrize("way", [[], ["shutdown"]])
def test_unread_failure_fails_the_job(horovodrun, tmp_path, way):
    os.mkfifo(tmp_path / "fifo")
    result = horovodrun.run("-np", "2", sys.executable, JOB, "jax", tmp_path / "fifo", *way, timeout=120)
    assert result.returncode == 1
    assert sorted(result.stdout.splitlines()) == ["[0]<stdout>:end", "[1]<stdout>:end"]
    assert "JAX did not report this: no result of that program was read." in result.stderr
    assert "Cause: rank 1 on host localhost left first" in result.stderr
