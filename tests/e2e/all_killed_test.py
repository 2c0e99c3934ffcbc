"""Commits of plain values outlive all workers at once."""

import json
import sys
from pathlib import Path

import pytest

JOB = Path(__file__).resolve().parent / "jobs" / "all_killed.py"


@pytest.mark.parametrize("kind", ["ObjectState", "Mine"])
def test_job_continues_from_the_step_at_which_all_were_killed(horovodrun, tmp_path, kind):
    flags = ["-np", "3", "--min-np", "3", "-H", "localhost:3", "--max-failures", "1000/10m"]
    result = horovodrun.run(*flags, sys.executable, JOB, tmp_path, kind, env={"OMP_NUM_THREADS": "1"}, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    first, again, end = (json.loads(line.split(">:", 1)[1]) for line in result.stdout.splitlines())
    assert (first["begins"], again["begins"], end["ends"]) == (0, 10, 15)
    assert again["total"] == sum(range(10)) and end["total"] == sum(range(15))
    assert again["history"] == (list(range(1, 11)) if kind == "Mine" else [])
    assert "Horovod: going on from commit 10, kept in memory" in result.stderr
    assert horovodrun.processes_left() == []
