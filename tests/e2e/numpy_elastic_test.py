"""horovod.numpy in an elastic job, without any framework."""

import json
import sys
from pathlib import Path

import pytest

JOB = Path(__file__).resolve().parent / "jobs" / "numpy_elastic.py"


@pytest.mark.parametrize("ranks", [2, 3])
def test_job_continues_when_a_worker_is_killed(horovodrun, tmp_path, ranks):
    flags = ["-np", str(ranks), "--min-np", str(ranks), "-H", f"localhost:{ranks}"]
    result = horovodrun.run(*flags, sys.executable, JOB, tmp_path, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    assert (tmp_path / "killed").exists()
    (line,) = result.stdout.splitlines()
    states = json.loads(line.split(">:", 1)[1])
    weights, seen, step = states[0]
    assert states == [[weights, seen, step]] * ranks
    assert step == 10 and weights == [float(ranks * sum(range(10)))] * 3
    assert len(seen) == 10 and all(len(set(batch)) == ranks for batch in seen)
    assert horovodrun.processes_left() == []
