"""A commit that an agent has is not lost, whichever worker made it."""

import os
import re
import signal
import sys
from pathlib import Path

import pytest

JOBS = Path(__file__).resolve().parent / "jobs"
JOB = JOBS / "last_commit.py"
BETWEEN_WORLDS = JOBS / "ended_between_worlds.py"


def test_newcomer_begins_with_the_commit_of_the_only_worker_which_died_before_it_had_joined(horovodrun, tmp_path):
    hosts, script = tmp_path / "hosts", tmp_path / "hosts.sh"
    script.write_text(f"#!/bin/sh\ncat {hosts}\n")
    script.chmod(0o755)
    hosts.write_text("localhost:1\n")
    sizes = ["-np", "1", "--min-np", "1", "--max-np", "2", "--host-discovery-script", script]
    job = horovodrun.start(*sizes, sys.executable, JOB, tmp_path, env={"OMP_NUM_THREADS": "1"})
    first = int(job.stdout.wait_for(r'\{"waits": 5, "pid": (\d+)\}', 90).group(1))
    more = tmp_path / "more"
    more.write_text("localhost:2\n")
    os.replace(more, hosts)
    job.stdout.wait_for(r'"initialized": true', 90, count=2)
    os.kill(first, signal.SIGKILL)
    job.stdout.wait_for(r'\{"waits": \d+', 90, count=2)
    (tmp_path / "go on").touch()
    assert job.wait(90) == 0, job.everything()
    begins = [int(step) for step in re.findall(r'"begins": (\d+)', job.stdout.text)]
    assert begins[0] == 0 and set(begins[1:]) <= {5, 6, 7}, job.everything()
    assert "since the start lost" not in job.stderr.text
    assert horovodrun.processes_left() == []


def end_between_worlds(horovodrun, tmp_path, ranks, killed):
    """A job of one host whose ranks `killed` are killed at commit 5, and which gets SIGTERM while their replacements start."""
    flags = ["-np", ranks, "--min-np", ranks, "--grace", "600"]
    job = horovodrun.start(*flags, sys.executable, BETWEEN_WORLDS, tmp_path, env={"OMP_NUM_THREADS": "1"})
    held = [job.stdout.wait_for(rf"rank {rank} holds (\d+)$", 90) for rank in range(ranks)]
    pids = [int(match.group(1)) for match in held]
    (tmp_path / "killed").touch()
    for rank in killed:
        os.kill(pids[rank], signal.SIGKILL)
    job.stdout.wait_for("replacement starts$", 90, count=len(killed))
    job.signal(signal.SIGTERM)
    job.stderr.wait_for("interrupted by SIGTERM", 60)
    (tmp_path / "gate").touch()
    assert job.wait(90) == 143, job.everything()
    return job


@pytest.mark.parametrize("ranks, killed", [(1, [0]), (2, [0, 1]), (2, [0]), (2, [1])])
def test_commit_that_agents_or_survivors_hold_is_written_when_the_job_ends_between_worlds(
    horovodrun, tmp_path, ranks, killed
):
    job = end_between_worlds(horovodrun, tmp_path, ranks, killed)
    last = job.stderr.text.splitlines()[-1]
    written = re.search(r"; newest checkpoint: commit (\d+), ", last)
    assert written is not None and int(written[1]) >= 5, job.everything()
    assert horovodrun.processes_left() == []


@pytest.mark.parametrize("first", ["horovodrun", "workers"])
def test_commit_is_written_when_sigterm_reaches_all_processes_of_a_job(horovodrun, tmp_path, first):
    """As by systemd, which signals a service's whole control group."""
    flags = ["-np", "2", "--min-np", "2", "--grace", "600"]
    job = horovodrun.start(*flags, sys.executable, BETWEEN_WORLDS, tmp_path, env={"OMP_NUM_THREADS": "1"})
    pids = [int(job.stdout.wait_for(rf"rank {rank} holds (\d+)$", 90).group(1)) for rank in range(2)]
    if first == "horovodrun":
        job.signal(signal.SIGTERM)
        job.stderr.wait_for("interrupted by SIGTERM", 60)
    for pid in pids:
        os.kill(pid, signal.SIGTERM)
    if first == "workers":
        job.signal(signal.SIGTERM)
    job.stdout.wait_for(r"begins at 5 of \d$", 90)
    (tmp_path / "killed").touch()
    assert job.wait(90) == 143, job.everything()
    written = re.search(r"; newest checkpoint: commit (\d+), ", job.stderr.text.splitlines()[-1])
    assert written is not None and int(written[1]) >= 5, job.everything()
    assert horovodrun.processes_left() == []
