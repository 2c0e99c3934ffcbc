"""What newcomers of an elastic job get, and what the store of commits holds afterwards."""

import json
import sys
from pathlib import Path

import pytest

JOB = Path(__file__).resolve().parent / "jobs" / "elastic_sync.py"


@pytest.mark.parametrize("changed", [False, True])
def test_after_a_sync_all_ranks_hold_the_same_and_the_store_holds_it_too(horovodrun, changed):
    arguments = ["changed"] if changed else []
    result = horovodrun.run(
        "-np",
        "3",
        "--min-np",
        "2",
        "-H",
        "localhost:3",
        sys.executable,
        JOB,
        *arguments,
        env={"OMP_NUM_THREADS": "1"},
        timeout=120,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    entries = [json.loads(line.split(">:", 1)[1]) for line in result.stdout.splitlines()]
    by_batch = {}
    for entry in entries:
        by_batch.setdefault(entry["held"][-1], {})[entry["rank"]] = entry
    assert sorted(by_batch) == [0, 4, 8] and all(sorted(ranks) == [0, 1, 2] for ranks in by_batch.values())
    for batch, ranks in by_batch.items():
        for rank, entry in ranks.items():
            assert entry["held"] == ranks[0]["held"]
            if batch == 0:
                continue
            commit, *stored = entry["stored"]
            assert stored == entry["held"]
            assert commit == ranks[0]["stored"][0]
            # A survivor's last commit is what is synchronized, unless it was changed.
            is_new = rank == 2 or changed
            assert (entry["begun"] > 0) == is_new, entry
    assert horovodrun.processes_left() == []
