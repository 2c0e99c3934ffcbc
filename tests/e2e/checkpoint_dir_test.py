"""Checkpoint folders that two jobs want, and that are full."""

import json
import os
import re
import signal
import sys
from datetime import datetime
from pathlib import Path

import pytest

from processes import program
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


@pytest.mark.parametrize("folder", ["one", "each"])
def test_folder_that_rank_0_does_not_write_to_is_told(horovodrun, tmp_path, folder):
    code = FOLDERS.replace("FOLDER", repr(str(tmp_path) + ("/{}" if folder == "each" else "")))
    result = horovodrun.run("-np", "3", "--min-np", "1", "-H", "localhost:3", sys.executable, "-c", code)
    assert result.returncode == 0, result.stdout + result.stderr
    told = sorted(line for line in result.stderr.splitlines() if "rank 0 writes checkpoints" in line)
    assert len(told) == (2 if folder == "each" else 0), result.stderr
    for rank, line in enumerate(told, 1):
        assert (
            f"checkpoint_dir {tmp_path}/{rank} of rank {rank} on host localhost is not rank 0's: rank 0 writes" in line
        )
        assert f" to {tmp_path}/0 on host localhost. " in line


FOLDERS = """
import horovod.numpy as hvd

hvd.init()
state = hvd.elastic.State(step=0, checkpoint_dir=FOLDER.format(hvd.rank()))


@hvd.elastic.run
def train(state):
    state.step += 1
    state.commit()


train(state)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_training_continues_with_a_full_disk(horovodrun, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    # In the worker's own mount namespace, and gone with it.
    mounted = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=3m none "$0" && exec "$@"', small]
    result = horovodrun.run(*ALONE, "--event-log", "events", *mounted, sys.executable, JOB, small, 3, 2)
    assert result.returncode == 0, result.stdout + result.stderr
    kept = ["checkpoint-1-w1.hvd"]
    assert entries(result.stdout) == [{"step": step, "found": kept} for step in (1, 2, 3)]
    lines = [line for line in result.stderr.splitlines() if "Horovod: checkpoint" in line]
    assert len(lines) == 1 and lines[0].endswith("can't be written: No space left on device")
    assert f"the last commit that was due, 3, is in no checkpoint in {small}: No space left on device" in result.stderr
    assert result.stderr.splitlines()[-1] == (
        f"horovodrun: 1 rank finished; 1 world; newest checkpoint: commit 1, {small}/checkpoint-1-w1.hvd "
        f"(then: checkpoint 2 in {small} can't be written: No space left on device)"
    )
    told = [event["text"] for event in events(tmp_path) if event["kind"].startswith("checkpoint_")]
    assert told == [
        f"there is a checkpoint of commit 1: {small}/checkpoint-1-w1.hvd",
        f"checkpoint 2 in {small} can't be written: No space left on device",
    ]


def events(directory):
    return [json.loads(line) for line in (directory / "events").read_text().splitlines()]


def seconds_of(event):
    return datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()


def test_what_is_lost_counts_from_the_checkpoint(horovodrun, tmp_path):
    checkpoints, gate = tmp_path / "checkpoints", tmp_path / "gate"
    os.mkfifo(gate)
    job = horovodrun.start(*ALONE, "--event-log", "events", sys.executable, JOB, checkpoints, 3, 0.1, gate)
    job.stdout.wait_for(r'"step": 2', 60)
    for pid in horovodrun.processes():  # the agent and its guard, with the commits in the agent's memory
        if program(pid).endswith("horovod-agent"):
            os.kill(pid, signal.SIGKILL)
    job.stderr.wait_for(r"world 2 goes on from commit 2; .* of work since commit 2 lost", 60)
    with open(gate, "w"):
        pass
    assert job.wait(60) == 0, job.everything()
    assert "since the start lost" not in job.stderr.text
    assert "; the last world began with commit 2; work since the newest commit lost 1 time (" in job.stderr.text
    by_kind = {}
    for event in events(tmp_path):
        by_kind.setdefault(event["kind"], []).append(event)
    first, second = by_kind["world_began"]
    assert (first["commit"], second["commit"]) == (0, 2)
    (broken,) = by_kind["world_broken"]
    assert 0 < second["lost_seconds"] < seconds_of(broken) - seconds_of(first)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_signal_of_a_scheduler_or_a_closed_terminal_loses_no_step(horovodrun, tmp_path, name):
    """As Slurm's, before it takes the nodes away: all leave at a commit, whose state the requeued job begins with."""
    folder = ["--checkpoint-dir", tmp_path, "--checkpoint-every", "100000", "--samples", "100000"]
    command = ["-np", "2", "--min-np", "1", "--grace", "600", sys.executable, TRAINING, "--framework", "numpy", *folder]
    first = horovodrun.start(*command)
    log = TrainingLog(first.stdout)
    log.wait_until(lambda: log.trains_with(2) and log.last_step() >= 5, 90, "two ranks train")
    first.signal(signal.Signals[name])
    if name == "SIGHUP":
        first.signal(signal.SIGHUP)  # of the shell and of the kernel
    # Nobody waits for another host, as in other drains.
    assert first.wait(60) == 128 + signal.Signals[name], first.everything()
    assert "all workers leave at their next commit, within 10m" in first.stderr.text
    assert re.fullmatch(
        r"horovodrun: stopped: horovodrun was interrupted by "
        rf"{name}; 1 world; 1 host left; newest checkpoint: commit "
        rf"\d+, {tmp_path}/checkpoint-\d+-w1\.hvd; the same command goes on from there",
        first.stderr.text.splitlines()[-1],
    ), first.stderr.text
    second = horovodrun.start(*command)
    resumed = TrainingLog(second.stdout)
    resumed.wait_until(lambda: resumed.last_step() > 0, 90, "it trains again")
    assert next(iter(resumed.worlds().values()))[1] == log.last_step()
    second.signal(signal.SIGINT)
    assert second.wait(60) == 130, second.everything()
