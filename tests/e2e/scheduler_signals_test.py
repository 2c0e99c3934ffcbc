"""What schedulers send to a job: notices to all of its processes, and signals that end it."""

import os
import re
import signal
import sys
from pathlib import Path

import pytest

from processes import command_line, pids_with

JOB = Path(__file__).resolve().parent / "jobs" / "scheduler_signals.py"
OURS = r"(\S*/)?(horovodrun|horovod-guard|horovod-agent|horovod-rendezvousd) "


@pytest.fixture(params=["", "--min-np 2"], ids=["static", "elastic"])
def job(request, horovodrun, tmp_path):
    job = horovodrun.start(
        "-np",
        "2",
        *request.param.split(),
        "sh",
        "-c",
        f"{sys.executable} {JOB} {tmp_path}; exit $?",
        env=mark(tmp_path),
    )
    job.stdout.wait_for(r"step 5$", 60)
    return job


def mark(tmp_path):
    return {"OMP_NUM_THREADS": "1", "SCHEDULED_TEST": str(tmp_path)}


def our_processes(tmp_path):
    pids = pids_with(f"SCHEDULED_TEST={tmp_path}\0".encode())
    return [pid for pid in pids if re.match(OURS, command_line(pid))]


def end(job, tmp_path):
    (tmp_path / "end").touch()
    assert job.wait() == 0, job.everything()
    return [(tmp_path / f"notices{rank}").read_text().split() for rank in (0, 1)]


@pytest.mark.parametrize("name", ["SIGUSR1", "SIGUSR2", "SIGXCPU"])
def test_a_notice_to_all_processes_reaches_each_worker_once(job, tmp_path, name):
    pids = our_processes(tmp_path)
    assert len(pids) == 3, pids
    for pid in pids:
        os.kill(pid, signal.Signals[name])
    for rank in (0, 1):
        job.stdout.wait_until(lambda _, rank=rank: (tmp_path / f"notices{rank}").exists(), 60, "a notice")
    assert end(job, tmp_path) == [[name], [name]]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_static_job_that_is_stopped_may_save_with_all_ranks(horovodrun, tmp_path, name):
    job = horovodrun.start("-np", "2", sys.executable, JOB, tmp_path, env=mark(tmp_path))
    job.stdout.wait_for(r"step 5$", 60)
    job.signal(signal.Signals[name])
    assert job.wait() == 128 + signal.Signals[name], job.everything()
    saved = {(tmp_path / f"saved{rank}").read_text() for rank in (0, 1)}
    assert len(saved) == 1, job.everything()
    assert "HorovodInternalError" not in job.everything()
