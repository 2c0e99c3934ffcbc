"""A worker that raises does not hold up the others while its interpreter ends; and what is said of it."""

import json
import os
import re
import sys
from pathlib import Path

JOB = Path(__file__).resolve().parent / "jobs" / "raises.py"


def test_others_continue_before_it_has_ended(horovodrun, tmp_path):
    os.mkfifo(tmp_path / "goes_on")
    result = horovodrun.run(
        "-np", "2", "--min-np", "1", "--event-log", "events", sys.executable, JOB, tmp_path, timeout=120
    )
    assert result.returncode == 0, result.stdout + result.stderr
    failed = result.stderr.index("rank 1 on host localhost failed: RuntimeError: as it is to; going on with 1 worker")
    formed = re.search(
        r"world of 1 worker formed \(world 2\); 1 step and \d.*s of work since commit 5 lost", result.stderr
    )
    assert formed and failed < formed.start(), result.stderr
    events = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    kinds = [event["kind"] for event in events]
    first = kinds.index("world_formed")
    assert [kind for kind in kinds[first + 1 :] if kind in ("world_broken", "worker_failed", "world_formed")][:3] == [
        "world_broken", "worker_failed", "world_formed",
    ]  # fmt: skip
    assert kinds.count("worker_failed") == 1
    assert [event["lost_steps"] for event in events if event["kind"] == "world_formed"][:2] == [0, 1]
    summary = result.stderr.strip().splitlines()[-1]
    assert re.search(r"work since the newest commit lost 1 time \(1 step and \d.*s of work\)", summary), summary
    assert horovodrun.processes_left() == []
