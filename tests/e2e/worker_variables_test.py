"""HOROVOD_RANK and the like in an elastic job, whose hosts may join one after the other."""

import json
import sys
from pathlib import Path

JOB = Path(__file__).resolve().parent / "jobs" / "shows_variables.py"


def test_variables_follow_the_world_and_no_two_ranks_are_the_same(horovodrun):
    """-np is smaller than the number of slots, so the workers of one host start before the other host is there."""
    hosts = "localhost:2,127.0.0.1:2"
    result = horovodrun.run("-np", "2", "--min-np", "2", "-H", hosts, sys.executable, JOB, env={"OMP_NUM_THREADS": "1"})
    assert result.returncode == 0, result.stderr
    seen = [json.loads(line.split(">:", 1)[1]) for line in result.stdout.splitlines()]
    assert len(seen) >= 2
    for each in seen:
        assert each["after"] == each["world"]
        assert each["before"][0] == each["world"][0]
    assert sorted(each["before"][0] for each in seen) == list(range(len(seen)))
