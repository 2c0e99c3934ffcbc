"""A commit that an agent has is not lost, whichever worker made it."""

import os
import re
import signal
import sys
from pathlib import Path

JOB = Path(__file__).resolve().parent / "jobs" / "last_commit.py"


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
