"""Checkpoint folders that two jobs want, and that are full."""

import json
import os
import sys
from pathlib import Path

import pytest

JOB = Path(__file__).resolve().parent / "jobs" / "checkpoints.py"
ALONE = ["-np", "1", "--min-np", "1", "-H", "localhost:1"]


def entries(output):
    return [json.loads(line.split(">:", 1)[1]) for line in output.splitlines() if ">:{" in line]


def test_second_job_with_the_folder_fails_and_leaves_the_first_alone(horovodrun, tmp_path):
    checkpoints, gate = tmp_path / "checkpoints", tmp_path / "gate"
    os.mkfifo(gate)
    first = horovodrun.start(*ALONE, sys.executable, JOB, checkpoints, 3, 0.1, gate)
    first.stdout.wait_for(r'"step": 2', 60)
    unfinished = checkpoints / ".checkpoint-3-w1.hvd.1.x.tmp"
    unfinished.touch()
    second = horovodrun.run(*ALONE, sys.executable, JOB, checkpoints, 2, 0.1)
    assert second.returncode == 1
    assert f"ValueError: checkpoint_dir {checkpoints} is in use by another job (process " in second.stderr
    assert unfinished.exists()
    with open(gate, "w"):
        pass
    assert first.wait(60) == 0, first.everything()
    assert entries(first.stdout.text)[-1]["found"] == ["checkpoint-2-w1.hvd", "checkpoint-3-w1.hvd"]
    third = horovodrun.run(*ALONE, sys.executable, JOB, checkpoints, 4, 0.1)
    assert third.returncode == 0, third.stdout + third.stderr
    assert entries(third.stdout) == [{"step": 4, "found": ["checkpoint-3-w1.hvd", "checkpoint-4-w2.hvd"]}]
    assert not unfinished.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system of its own")
def test_training_goes_on_with_a_full_disk(horovodrun, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    # In the worker's own mount namespace, and gone with it.
    mounted = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=3m none "$0" && exec "$@"', small]
    result = horovodrun.run(*ALONE, *mounted, sys.executable, JOB, small, 3, 2)
    assert result.returncode == 0, result.stdout + result.stderr
    kept = ["checkpoint-1-w1.hvd"]
    assert entries(result.stdout) == [{"step": step, "found": kept} for step in (1, 2, 3)]
    lines = [line for line in result.stderr.splitlines() if "can't be written" in line]
    assert len(lines) == 1 and lines[0].endswith("can't be written: No space left on device")
