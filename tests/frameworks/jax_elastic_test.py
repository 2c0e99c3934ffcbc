"""Elastic training within jit: a worker that is killed in the middle of a program, and the worlds after it."""

import json
import sys
from pathlib import Path

import pytest

JOB = Path(__file__).resolve().parent / "jobs" / "jax_elastic.py"


@pytest.mark.parametrize("way", ["plain", "gather"])
def test_survivors_of_a_kill_within_jit_continue(horovodrun, way):
    flags = ["-np", "3", "--min-np", "2", "-H", "localhost:3"]
    result = horovodrun.run(*flags, sys.executable, JOB, way, env={"OMP_NUM_THREADS": "1"}, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    steps = [json.loads(line.split(">:", 1)[1]) for line in result.stdout.splitlines()]
    numbers = [entry["step"] for entry in steps]
    assert sorted(set(numbers)) == list(range(1, numbers[-1] + 1))
    assert {entry["step"] for entry in steps if entry["world"] == 1} == {1, 2, 3, 4} and steps[0]["size"] == 3
    assert steps[-1]["size"] == 3 and steps[-1]["world"] > 2
    assert any(entry["size"] == 2 for entry in steps), "the newcomer was not waited for"
    for entry in steps:
        assert (entry["average"], entry["more"]) == ((entry["size"] + 1) / 2, entry["size"] + 1)
    if way == "plain":
        assert {entry["traces"] for entry in steps} == {1}
    assert horovodrun.processes_left() == []
