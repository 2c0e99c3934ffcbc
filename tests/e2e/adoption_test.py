"""Processes that run already and become workers: their agents adopt them."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from joinable import Joinable
from processes import all_pids, command_line, pids_with

JOB = Path(__file__).resolve().parent / "jobs" / "adopted.py"


class Adoptions:
    """Daemons, and processes that join them."""

    def __init__(self, directory):
        self.joinable = Joinable(directory)
        self.jobs = []  # address and token file of each

    def start_daemon(self, *limits):
        token = self.joinable.directory / f"token{len(self.jobs)}"
        daemon, address = self.joinable.start_daemon(token, *limits)
        self.jobs.append((address, token))
        return daemon

    def start_process(self, name, what="end"):
        places = [word for job in self.jobs for word in job]
        return self.joinable.start(sys.executable, JOB, *places, NAME=name, ADOPTED=what)


@pytest.fixture
def adoptions(tmp_path):
    adoptions = Adoptions(tmp_path)
    yield adoptions
    adoptions.joinable.close()


def test_one_process_takes_part_in_several_jobs(adoptions):
    daemons = [adoptions.start_daemon("--np", "2", "--hosts", "b:1,a:1") for _ in range(2)]
    a, b = (adoptions.start_process(name) for name in "ab")
    for process, rank in ((a, 1), (b, 0)):
        assert process.wait(90) == 0, process.everything()
        lines = process.stdout.text.splitlines()
        assert lines == 2 * [
            f"rank {rank} of 2 local {rank} sum 2 pid {process.popen.pid}",
            "job ended with 0",
            "left behind: []",
        ], process.everything()
        assert process.stderr.text == ""
    assert [daemon.wait() for daemon in daemons] == [0, 0]


def test_an_error_is_the_jobs(adoptions):
    daemon = adoptions.start_daemon("--np", "2", "--hosts", "a:1,b:1")
    a = adoptions.start_process("a", "raise")
    b = adoptions.start_process("b", "wait")
    assert a.wait(90) == 0 and b.wait(90) == 0
    # The message about the end of the others may come before this process has reported its own.
    ended = re.search(
        r"^ValueError: on purpose\n(told to stop within \d+ s\n)?job ended with ([13])$", a.stdout.text, re.M
    )
    assert ended, a.everything()
    assert "rank 0 on host a failed: ValueError: on purpose" in b.stdout.text
    # 1, here and above: on a busy machine the job is over before it has heard rank 0's exit code, for which it waits a second.
    assert re.search(r"^job ended with [13]$", b.stdout.text, re.M)
    assert daemon.wait() == int(ended.group(2))
    assert "rank 0 on host a failed: ValueError: on purpose" in daemon.stderr.text, daemon.everything()


def test_a_killed_process_ends_the_job_of_the_others(adoptions):
    daemon = adoptions.start_daemon("--np", "2", "--hosts", "a:1,b:1")
    a = adoptions.start_process("a", "train")
    b = adoptions.start_process("b", "wait")
    a.stdout.wait_for("^rank 0", 60)
    a.signal(signal.SIGKILL)
    assert b.wait() == 0
    assert "HorovodInternalError" in b.stdout.text, b.everything()
    assert daemon.wait() in (1, 128 + signal.SIGKILL), daemon.everything()
    assert "rank 0 on host a" in daemon.stderr.text, daemon.everything()


def test_the_end_of_the_job_is_reported(adoptions):
    daemon = adoptions.start_daemon("--np", "1")
    process = adoptions.start_process("a", "train")
    process.stdout.wait_for("^rank 0", 60)
    daemon.signal(signal.SIGTERM)
    assert process.wait(60) == 0, process.everything()
    assert "told to stop within" in process.stdout.text


def test_a_killed_agent_is_the_end_of_the_job_for_its_process(adoptions):
    daemon = adoptions.start_daemon("--np", "1")
    process = adoptions.start_process("a", "train")
    process.stdout.wait_for("^rank 0", 60)
    mark = f"--adopt {process.popen.pid}"
    agents = [pid for pid in all_pids() if mark in command_line(pid)]
    assert len(agents) == 2, "an agent and its guard"
    for pid in agents:
        os.kill(pid, signal.SIGKILL)
    assert process.wait(60) == 0, process.everything()
    assert "told to stop within 5 s" in process.stdout.text and "left behind: []" in process.stdout.text
    assert daemon.wait(60) == 1, daemon.everything()


def test_a_killed_process_of_an_elastic_job_leaves_it(adoptions):
    daemon = adoptions.start_daemon("--np", "1", "--min-np", "1", "--max-np", "2")
    a = adoptions.start_process("a", "train")
    a.stdout.wait_for("^rank 0", 60)
    a.signal(signal.SIGKILL)
    daemon.stderr.wait_for("host a left")
    b = adoptions.start_process("b")
    assert b.wait(90) == 0, b.everything()
    assert "rank 0 of 1" in b.stdout.text and "job ended with 0" in b.stdout.text
    assert daemon.wait() == 0, daemon.everything()


def test_secrets_are_in_no_argument_and_no_environment(adoptions):
    adoptions.start_daemon("--np", "1")
    token = next(line.split('"')[1] for line in adoptions.jobs[0][1].read_text().splitlines() if "token" in line)
    process = adoptions.start_process("a", "train")
    process.stdout.wait_for("^rank 0", 60)
    agents = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert f"--adopt {process.popen.pid}" in agents and token not in agents
    mark = str(adoptions.jobs[0][1].parent).encode()
    for pid in pids_with(mark):
        assert token.encode() not in Path(f"/proc/{pid}/environ").read_bytes()


def test_another_users_process_is_refused(adoptions):
    if os.geteuid() != 0:
        pytest.skip("only root can start one")
    adoptions.start_daemon("--np", "1")
    address, token = adoptions.jobs[0]
    sleeper = "import os, time; os.setuid(65534); print('up', flush=True); time.sleep(1000)"
    other = adoptions.joinable.start(sys.executable, "-c", sleeper)
    other.stdout.wait_for("^up")
    command = ["horovod-agent", "--join", address, "--token-file", token, "--adopt", str(other.popen.pid)]
    refused = subprocess.run(command, stdin=subprocess.PIPE, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1
    assert "it belongs to user 65534, this process to user 0" in refused.stderr
