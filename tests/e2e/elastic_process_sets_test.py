"""Process sets of an elastic job: they work in each world."""

import json
import sys
from pathlib import Path

import pytest

JOB = Path(__file__).resolve().parent / "jobs" / "elastic_process_sets.py"


def worlds(stdout):
    """What rank 0 saw, by size and number of the world."""
    seen = {}
    for line in stdout.splitlines():
        entry = json.loads(line.split(">:", 1)[1])
        seen.setdefault((entry["size"], entry["world"]), []).append(entry)
    return seen


@pytest.mark.parametrize("where", ["before", "inside"])
def test_sets_come_into_the_next_worlds(horovodrun, where):
    result = horovodrun.run(
        "-np",
        "3",
        "--min-np",
        "2",
        "-H",
        "localhost:3",
        sys.executable,
        JOB,
        where,
        env={"OMP_NUM_THREADS": "1"},
        timeout=120,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    steps_of = worlds(result.stdout)
    first, last = min(steps_of, key=lambda key: key[1]), max(steps_of, key=lambda key: key[1])
    assert first == (3, 1) and last[0] == 3 and last[1] > 2
    assert any(size == 2 for size, _ in steps_of), "the newcomer was not waited for"
    for (size, world), steps in steps_of.items():
        for entry in steps:
            assert entry["by_rule"] == list(range(1, size))
            if where == "inside":
                continue
            assert entry["survivors"] == [0, 1]
            if world == 1:
                assert entry["of_the_lost"] == [0, 2]
            else:
                assert "rank 2 is not there any more" in entry["of_the_lost"] and "rule=" in entry["of_the_lost"]
    assert horovodrun.processes_left() == []
