"""An elastic job that is asked to end while its output is not read and the pipe stays open: a paused pager, or a log collector that hangs."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from polling import poll_until

JOB = Path(__file__).resolve().parent / "jobs" / "floods.py"


def control(*words):
    return subprocess.run(["horovodrun", *words], capture_output=True, text=True, timeout=100)


def job_of(pid):
    """The id of that horovodrun's job: those of other tests may run on this machine."""
    listed = re.findall(r"^(?:job )?([0-9a-f]{8})", control("status").stdout, re.M)
    answers = {name: control("status", "--json", "--job", name) for name in listed}  # a job may have ended in between
    pids = {name: json.loads(each.stdout)["daemon"]["pid"] for name, each in answers.items() if each.returncode == 0}
    (mine,) = [name for name, daemon in pids.items() if daemon == pid]
    return mine


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP, "stop"])
def test_workers_that_nobody_reads_come_to_their_last_commit(tmp_path, how):
    reading, writing = os.pipe()
    command = ["horovodrun", "-np", "2", "--min-np", "1", "--grace", "3600", sys.executable, str(JOB), str(tmp_path)]
    own = {**os.environ, "OMP_NUM_THREADS": "1"}
    job = subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE, text=True, env=own, start_new_session=True)
    try:
        os.close(writing)
        poll_until(lambda: len(list(tmp_path.glob("floods*"))) == 2, "both write")
        if how == "stop":
            stop = control("stop", "--job", job_of(job.pid))
            assert stop.returncode == 0, stop.stderr
        else:
            job.send_signal(how)
        said = job.communicate(timeout=100)[1]
    finally:
        job.kill()
        os.close(reading)
    assert job.returncode == (143 if how == "stop" else 128 + how), said
    assert "newest checkpoint: commit 6, " in said and "is lost" not in said
    assert len(list((tmp_path / "checkpoints").glob("*.hvd"))) == 1
