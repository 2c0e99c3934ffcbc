"""States with lists and dicts of modules and optimizers, and with helpers of the script's own, whose workers are killed."""

import json
import sys
from pathlib import Path

import pytest

JOB = Path(__file__).resolve().parent / "jobs" / "parts.py"


def found(horovodrun, tmp_path, victims):
    flags = ["-np", "2", "--min-np", "2", "-H", "localhost:2", "--max-failures", "1000/10m"]
    result = horovodrun.run(*flags, sys.executable, JOB, tmp_path, victims, env={"OMP_NUM_THREADS": "1"}, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    first, second = (json.loads(line.split(">:", 1)[1]) for line in result.stdout.splitlines())
    assert first == second
    return first


@pytest.mark.parametrize("victims", ["1", "0,1"])
def test_training_ends_as_without_a_failure(horovodrun, tmp_path, victims):
    expected = found(horovodrun, tmp_path, "-")
    assert found(horovodrun, tmp_path, victims) == expected
    assert (tmp_path / "died").exists() and expected[-2:] == [10, 0.01]
