"""Checkpoint folders that two jobs want, and that are full."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from training_log import TrainingLog

JOB = Path(__file__).resolve().parent / "jobs" / "checkpoints.py"
TRAINING = JOB.parents[2] / "cluster" / "scripts" / "elastic_train.py"
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


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
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
    assert f"the last commit that was due, 3, is in no checkpoint in {small}: No space left on device" in result.stderr


def test_sigterm_of_a_scheduler_loses_no_step(horovodrun, tmp_path):
    """As Slurm's, before it takes the nodes away: all leave at a commit, whose state the requeued job begins with."""
    folder = ["--checkpoint-dir", tmp_path, "--checkpoint-every", "100000", "--samples", "100000"]
    command = ["-np", "2", "--min-np", "1", "--grace", "600", sys.executable, TRAINING, "--framework", "numpy", *folder]
    first = horovodrun.start(*command)
    log = TrainingLog(first.stdout)
    log.wait_until(lambda: log.trains_with(2) and log.last_step() >= 5, 90, "two ranks train")
    first.signal(signal.SIGTERM)
    assert first.wait(60) == 143, first.everything()  # nobody waits for another host, as in other drains
    assert "all workers leave at their next commit, within 10m" in first.stderr.text
    second = horovodrun.start(*command)
    resumed = TrainingLog(second.stdout)
    resumed.wait_until(lambda: resumed.last_step() > 0, 90, "it trains again")
    assert next(iter(resumed.worlds().values()))[1] == log.last_step()
    second.signal(signal.SIGINT)
    assert second.wait(60) == 130, second.everything()
