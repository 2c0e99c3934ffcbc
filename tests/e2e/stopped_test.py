"""Parts of a job that can't run for some seconds, as on a node that is too busy: SIGSTOP simulates that. The job continues unharmed."""

import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from polling import poll_until
from processes import command_line, pids_with

JOB = Path(__file__).resolve().parent / "jobs" / "waits_for_a_file.py"
SECONDS = 6  # more than a host may be silent
PROGRAMS = {"launcher": r"horovodrun ", "agent": r"\S*horovod-agent ", "worker": rf"\S+ {JOB}", "everything": ""}


def steps(text):
    return len(re.findall(r"step \d+", text))


@pytest.mark.parametrize("elastic", [False, True], ids=["static", "elastic"])
@pytest.mark.parametrize("part", PROGRAMS)
def test_a_stopped_part_continues(horovodrun, tmp_path, part, elastic):
    flags = ["--min-np", "2"] if elastic else []
    job = horovodrun.start(
        "-np",
        "2",
        *flags,
        "--event-log",
        "events",
        sys.executable,
        JOB,
        env={"OMP_NUM_THREADS": "1", "STOPPED_TEST": str(tmp_path)},
    )
    job.stdout.wait_for(r"step 10$", 60)
    pids = [
        pid for pid in pids_with(f"STOPPED_TEST={tmp_path}\0".encode()) if re.match(PROGRAMS[part], command_line(pid))
    ]
    assert pids, part
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(SECONDS)  # the fault's duration
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    seen = steps(job.stdout.text)
    job.stdout.wait_until(lambda text: steps(text) > seen + 10, 60, "further steps")
    (tmp_path / "end").touch()
    assert job.wait() == 0, job.everything()
    assert "lost" not in job.stderr.text
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "events").read_text().splitlines()]
    assert {"world_broken", "host_lost", "worker_failed"}.isdisjoint(kinds), kinds


def test_a_launcher_that_is_stopped_while_its_agent_attaches_continues(horovodrun, tmp_path):
    job = horovodrun.start("-np", "1", sys.executable, JOB, env={"OMP_NUM_THREADS": "1", "STOPPED_TEST": str(tmp_path)})
    mark = f"STOPPED_TEST={tmp_path}\0".encode()
    poll_until(lambda: any("horovod-agent" in command_line(pid) for pid in pids_with(mark)), "an agent")
    job.signal(signal.SIGSTOP)
    time.sleep(SECONDS)
    job.signal(signal.SIGCONT)
    job.stdout.wait_for(r"step 10$", 60)
    (tmp_path / "end").touch()
    assert job.wait() == 0, job.everything()


def test_workers_finish_while_the_launcher_is_stopped(horovodrun, tmp_path):
    job = horovodrun.start("-np", "2", sys.executable, JOB, env={"OMP_NUM_THREADS": "1"})
    job.stdout.wait_for(r"step 10$", 60)
    job.signal(signal.SIGSTOP)
    (tmp_path / "end").touch()
    time.sleep(2 * SECONDS)
    job.signal(signal.SIGCONT)
    assert job.wait() == 0, job.everything()


def agent_of(tmp_path):
    (agent,) = [
        pid
        for pid in pids_with(f"STOPPED_TEST={tmp_path}\0".encode())
        if re.match(PROGRAMS["agent"], command_line(pid))
    ]
    return agent


def test_an_agent_that_stays_stopped_is_ended_and_named(horovodrun, tmp_path):
    job = horovodrun.start("-np", "1", sys.executable, JOB, env={"OMP_NUM_THREADS": "1", "STOPPED_TEST": str(tmp_path)})
    job.stdout.wait_for(r"step 10$", 60)
    os.kill(agent_of(tmp_path), signal.SIGSTOP)
    assert job.wait() == 1, job.everything()
    assert "horovod-agent was stopped (SIGSTOP) for 10s, and is killed by its guard" in job.stderr.text
    assert "Cause: host localhost was lost" in job.stderr.text
    assert horovodrun.processes_left() == []


def test_a_guard_that_stays_stopped_does_not_hide_that_its_agent_has_ended(horovodrun, tmp_path):
    with_child = f"setsid sleep 1000 & exec {sys.executable} {JOB}"
    job = horovodrun.start(
        "-np", "1", "sh", "-c", with_child, env={"OMP_NUM_THREADS": "1", "STOPPED_TEST": str(tmp_path)}
    )
    job.stdout.wait_for(r"step 10$", 60)
    agent = agent_of(tmp_path)
    guard = int(Path(f"/proc/{agent}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(guard, signal.SIGSTOP)
    os.kill(agent, signal.SIGKILL)
    assert job.wait() == 1, job.everything()
    assert "Cause: host localhost was lost" in job.stderr.text
    assert horovodrun.processes_left() == []
