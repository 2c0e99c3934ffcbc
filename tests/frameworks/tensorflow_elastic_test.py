"""Elastic training with TensorFlow's variables: a worker that is killed in the middle of a step, and the worlds after it."""

import json
import sys
from pathlib import Path

import pytest

JOB = Path(__file__).resolve().parent / "jobs" / "tensorflow_elastic.py"


@pytest.mark.parametrize("way", ["function", "eager"])
def test_survivors_of_a_kill_continue_from_the_last_commit(horovodrun, way):
    flags = ["-np", "3", "--min-np", "2", "-H", "localhost:3"]
    result = horovodrun.run(*flags, sys.executable, JOB, way, env={"OMP_NUM_THREADS": "1"}, timeout=200)
    assert result.returncode == 0, result.stdout + result.stderr
    steps = [json.loads(line.split(">:", 1)[1]) for line in result.stdout.splitlines() if ">:{" in line]
    numbers = [entry["step"] for entry in steps]
    assert sorted(set(numbers)) == list(range(1, numbers[-1] + 1))
    assert {entry["step"] for entry in steps if entry["world"] == 1} == {1, 2, 3, 4} and steps[0]["size"] == 3
    assert steps[-1]["size"] == 3 and steps[-1]["world"] > 2
    assert any(entry["size"] == 2 for entry in steps), "the newcomer was waited for"
    for entry in steps:
        size = entry["size"]
        assert (entry["average"], entry["total"]) == ((size + 1) / 2, size * (size + 1) / 2)
    if way == "function":
        assert {entry["traces"] for entry in steps} == {1}
    assert horovodrun.processes_left() == []
