"""Memory runs out: the kernel ends a process of the job, without asking it."""

import os
import re
import signal
import sys
from pathlib import Path

import pytest

from memory_limit import memory_limit
from processes import Running, command_line, pids_with, wait_until_none

JOBS = Path(__file__).resolve().parent / "jobs"


def test_the_worker_at_fault_is_taken_and_the_job_continues(tmp_path):
    mark = f"MEMORY={tmp_path}"
    with memory_limit(1500) as limited:
        job = Running([*limited, "env", mark, "OMP_NUM_THREADS=1", "horovodrun", "-np", "2", "--min-np", "1",
                       sys.executable, JOBS / "eats_memory.py", tmp_path / "eaten"], cwd=tmp_path)  # fmt: skip
        assert job.wait(120) == 0, job.everything()
        assert wait_until_none(lambda: pids_with(f"{mark}\0".encode())) == []
    assert (tmp_path / "eaten").exists()
    assert "out of memory" in job.stderr.text, job.stderr.text
    assert "; 1 failure (1 x killed by signal 9 (SIGKILL), out of memory);" in job.stderr.text, job.stderr.text
    assert re.search(r"rank 0 of [12] is done at step 30", job.stdout.text)


def test_commits_find_no_memory_for_all_workers(tmp_path):
    """There is enough for one worker and what another has left behind, but not for the commits of two.

    The kernel may take both: it chooses by size, and the replacement of the first one needs memory, too. So no number of failures
    ends the job.
    """
    with memory_limit(1500) as limited:
        job = Running(
            [
                *limited,
                "env",
                "OMP_NUM_THREADS=1",
                "horovodrun",
                "-np",
                "2",
                "--min-np",
                "1",
                "--max-failures-in-a-row",
                "0",
                "--max-failures",
                "1000/10m",
                sys.executable,
                JOBS / "large_commits.py",
            ],
            cwd=tmp_path,
        )
        assert job.wait(300) == 0, job.everything()
    assert "out of memory" in job.stderr.text, job.stderr.text
    assert "rank 0 is done at step 5" in job.stdout.text


# The kernel takes an agent or the daemon: kill -9 stands for it.
@pytest.mark.parametrize("program", ["horovod-agent", "horovodrun"])
def test_the_agent_or_the_daemon_is_taken(horovodrun, tmp_path, program):
    job = horovodrun.start(
        "-np",
        "2",
        "--min-np",
        "1",
        sys.executable,
        JOBS / "waits_for_a_file.py",
        env={"OMP_NUM_THREADS": "1", "MEMORY": str(tmp_path)},
    )
    job.stdout.wait_for(r"step 5$", 60)
    (victim,) = [
        pid for pid in pids_with(f"MEMORY={tmp_path}\0".encode()) if re.match(rf"\S*{program} ", command_line(pid))
    ]
    os.kill(victim, signal.SIGKILL)
    if program == "horovod-agent":
        job.stderr.wait_for("host localhost was lost")
        (tmp_path / "end").touch()
        assert job.wait() == 0, job.everything()
    else:
        assert job.wait() == -signal.SIGKILL
    assert horovodrun.processes_left() == []
