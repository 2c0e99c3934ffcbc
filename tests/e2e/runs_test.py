"""Several elastic runs in one script, whose workers are killed in the second and in the third."""

import json
import sys
from pathlib import Path

import pytest

JOB = Path(__file__).resolve().parent / "jobs" / "runs.py"
FOUND = [[10.0, 10.0], [20.0, 20.0], [30.0, 30.0]]


def entries(result):
    assert result.returncode == 0, result.stdout + result.stderr
    return [json.loads(line.split(">:", 1)[1]) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("victims", ["0", "1", "0,1"])
def test_folds_keep_their_results_apart(horovodrun, tmp_path, victims):
    flags = ["-np", "2", "--min-np", "2", "-H", "localhost:2", "--max-failures", "1000/10m"]
    result = horovodrun.run(*flags, sys.executable, JOB, tmp_path, victims, env={"OMP_NUM_THREADS": "1"}, timeout=120)
    seen = entries(result)
    assert [entry["found"] for entry in seen if "found" in entry] == [FOUND] * 2
    begins = {(entry["fold"], entry["step"]) for entry in seen if "fold" in entry}
    assert begins == {(0, 0), (1, 0), (1, 5), (2, 0), (2, 5)}
    assert "run 2 of the script is over: going on with what it returned" in result.stderr
    assert horovodrun.processes_left() == []


@pytest.mark.parametrize("ranks", [1, 2])
def test_static_job_started_again_continues_in_its_run(horovodrun, tmp_path, ranks):
    command = ["-np", ranks, sys.executable, JOB, tmp_path, "0", tmp_path / "checkpoints"]
    begins = []
    for code in (137, 137, 0):
        result = horovodrun.run(*command, env={"OMP_NUM_THREADS": "1"}, timeout=120)
        assert result.returncode == code, result.stdout + result.stderr
        lines = [json.loads(line.split(">:", 1)[1]) for line in result.stdout.splitlines()]
        begins.append([(entry["fold"], entry["step"]) for entry in lines if entry["rank"] == 0 and "fold" in entry])
    assert [entry["found"] for entry in lines if "found" in entry] == [FOUND] * ranks
    assert begins == [[(0, 0), (1, 0)], [(1, 5), (2, 0)], [(2, 5)]]
