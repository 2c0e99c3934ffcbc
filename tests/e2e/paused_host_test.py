"""A host that is paused with all that runs there is given up, and another world trains. When it continues, its own commits no longer count, even
before its agent has noticed anything."""

import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest

from processes import Running, command_line, pids_with, wait_until_none

JOB = Path(__file__).resolve().parent / "jobs" / "commits_alone.py"
SHORT = {"HOROVOD_AGENT_TIMEOUT_SECONDS": "5", "OMP_NUM_THREADS": "1"}


@pytest.fixture
def start(tmp_path):
    """Starts a program of a job whose processes carry the mark of one host."""
    started = []

    def run(host, *command):
        environment = {**os.environ, **SHORT, "PAUSED_TEST": f"{tmp_path}-{host}"}
        started.append(Running([str(word) for word in command], env=environment, cwd=tmp_path))
        return started[-1]

    yield run
    for running in started:
        running.end()
    wait_until_none(lambda: pids_with(f"PAUSED_TEST={tmp_path}-".encode()))


def test_no_commit_counts_after_the_pause(start, tmp_path):
    limits = ["--np", "1", "--min-np", "1", "--max-np", "1", "--reattach-timeout", "1"]
    daemon = start(
        "daemon",
        "horovod-rendezvousd",
        "--listen",
        "127.0.0.1:0",
        *limits,
        "--state-dir",
        "state",
        "--token-file",
        "token",
    )
    address = daemon.stdout.wait_for(r"^(127\.0\.0\.1:\d+)$").group(1)

    def join(host):
        agent = ["horovod-agent", "--join", address, "--token-file", "token", "--host", host, "--slots", "1"]
        return start(host, *agent, "--", sys.executable, JOB, tmp_path)

    def commits(host):
        log = tmp_path / host
        return log.read_text().count("\n") if log.exists() else 0

    paused = join("a")
    paused.stdout.wait_for("five commits", 60)
    other = join("b")
    daemon.stderr.wait_for("host b joined")
    pids = pids_with(f"PAUSED_TEST={tmp_path}-a\0".encode())
    worker = next(pid for pid in pids if JOB.name in command_line(pid) and "horovod-agent" not in command_line(pid))
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    other.stdout.wait_for("five commits", 60)
    before = commits("a")
    os.kill(worker, signal.SIGCONT)  # its agent and guard stay stopped: only the daemon can end it
    assert wait_until_none(lambda: [pid for pid in [worker] if JOB.name in command_line(pid)], 60) == []
    # One may have been agreed on when the pause began.
    assert commits("a") <= before + 1, f"{commits('a') - before} commits after the pause"
    for pid in set(pids) - {worker}:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    assert paused.wait(60) != 0
    (tmp_path / "end").touch()
    assert other.wait(60) == 0, other.everything()
    assert daemon.wait(60) == 0, daemon.everything()
