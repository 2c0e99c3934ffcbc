"""System calls that an old kernel does not have or a container's guard refuses: one clear line and exit code 2, or the job does without."""

import subprocess
import sys
from pathlib import Path

import pytest

from processes import Running, pids_with, wait_until_none

REFUSE = Path(__file__).resolve().parent.parent / "support" / "refuse.py"
SUM = [
    sys.executable,
    "-c",
    "import numpy, horovod.numpy as hvd; hvd.init(); assert hvd.allreduce(numpy.ones(5), op=hvd.Sum)[4] == hvd.size()",
]
NEEDED = "Linux 5.4 or newer is needed"
ERRORS = ["ENOSYS", "EPERM"]  # of an old kernel; of a guard


def refused(call, error, *command):
    return [sys.executable, REFUSE, call, error, *command]


def check_one_line(text, program):
    lines = text.splitlines()
    assert len(lines) == 1 and lines[0].startswith(program) and NEEDED in lines[0], text


@pytest.mark.parametrize("error", ERRORS)
def test_horovodrun_without_pidfds(tmp_path, error):
    done = subprocess.run(
        refused("pidfd_open", error, "horovodrun", "-np", "1", "touch", "ran"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    check_one_line(done.stderr, "horovodrun: error: ")
    assert not (tmp_path / "ran").exists()


@pytest.fixture
def daemon(tmp_path):
    daemon = Running(
        ["horovod-rendezvousd", "--listen", "127.0.0.1:0", "--np", "1", "--token-file", tmp_path / "token"]
    )
    yield daemon.stdout.wait_for(r"^\S+:\d+$").group()
    daemon.end()


@pytest.mark.parametrize("error", ERRORS)
def test_joined_agent_without_pidfds(daemon, tmp_path, error):
    mark = f"REFUSED={tmp_path}"
    agent = ["env", mark, "horovod-agent", "--join", daemon, "--token-file", tmp_path / "token", "--", "touch", "ran"]
    done = subprocess.run(
        refused("pidfd_open", error, *agent), cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    check_one_line(done.stderr, "horovod-agent: ")
    assert not (tmp_path / "ran").exists()
    assert wait_until_none(lambda: pids_with(f"{mark}\0".encode())) == []


# What workers do without: the kernel's word on each other's end, and memory to share.
@pytest.mark.parametrize("call", ["pidfd_open", "memfd_create"])
def test_workers_do_without(horovodrun, call):
    job = horovodrun.run("-np", "2", *refused(call, "EPERM", *SUM))
    assert job.returncode == 0, job.stderr
    assert job.stderr == ""


def test_daemon_does_without(tmp_path):
    """It starts no processes."""
    daemon = Running(
        refused(
            "pidfd_open",
            "ENOSYS",
            "horovod-rendezvousd",
            "--listen",
            "127.0.0.1:0",
            "--np",
            "1",
            "--token-file",
            tmp_path / "token",
        )
    )
    try:
        address = daemon.stdout.wait_for(r"^\S+:\d+$").group()
        agent = Running(["horovod-agent", "--join", address, "--token-file", tmp_path / "token", "--", *SUM])
        assert agent.wait() == 0, agent.everything()
        assert daemon.wait() == 0, daemon.everything()
    finally:
        daemon.end()
