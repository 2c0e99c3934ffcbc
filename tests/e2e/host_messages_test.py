"""Scripts that look at what Horovod's states call `_host_messages` to wait for a change of the hosts."""

import os
import sys
from pathlib import Path

JOB = Path(__file__).resolve().parent / "jobs" / "host_messages.py"


def test_new_host_interrupts_the_next_commit(horovodrun, tmp_path):
    hosts, script = tmp_path / "hosts", tmp_path / "hosts.sh"
    script.write_text(f"#!/bin/sh\ncat {hosts}\n")
    script.chmod(0o755)
    hosts.write_text("localhost:1\n")
    sizes = ["-np", "1", "--min-np", "1", "--max-np", "2", "--host-discovery-script", script]
    job = horovodrun.start(*sizes, sys.executable, JOB, env={"OMP_NUM_THREADS": "1"})
    job.stdout.wait_for('{"size": 1, "quiet": true}', 90)
    more = tmp_path / "more"
    more.write_text("localhost:2\n")
    os.replace(more, hosts)
    assert job.wait(90) == 0, job.everything()
    assert job.stdout.text.count('{"size": 2, "quiet": true}') == 2, job.everything()
