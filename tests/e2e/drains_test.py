"""Hosts that are drained while no world runs, or last of all. The grace is an hour: who waits for its end fails the test."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from joinable import Joinable
from polling import poll_until

JOB = Path(__file__).resolve().parent / "jobs" / "drained.py"


class Job:
    """An elastic job of horovod-rendezvousd on this machine, whose hosts are agents."""

    def __init__(self, directory):
        self.directory = directory
        self.joinable = Joinable(directory)
        self.daemon, self.address = self.joinable.start_daemon("token", "--np", "2", "--min-np", "1", "--grace", "3600")

    def start_agent(self, host, gate=None, slots=1):
        flags = ["--join", self.address, "--token-file", "token", "--slots", slots, "--host", host]
        environment = {} if gate is None else {"GATE": gate}
        return self.joinable.start("horovod-agent", *flags, "--", sys.executable, JOB, self.directory, **environment)

    def ask(self, *words):
        command = ["horovodrun", *words, "--connect", self.address, "--token-file", str(self.directory / "token")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def await_waiting_worker(self, host):
        """Until the worker of this host has asked for its world."""
        waits = re.compile(rf"^{host} [^\n]*\n [^\n]*joining", re.M)
        poll_until(lambda: waits.search(self.ask("status")), f"a waiting worker on {host}")

    def open(self, gate):
        (self.directory / gate).touch()


@pytest.fixture
def job(tmp_path):
    job = Job(tmp_path)
    yield job
    job.joinable.close()


def test_first_world_does_without_a_host_that_is_drained_before_it(job):
    late = job.start_agent("a", gate="gate")
    drained = job.start_agent("b")
    job.await_waiting_worker("b")
    job.ask("drain", "b")
    assert drained.wait() == 0, drained.everything()
    assert "Error" not in drained.everything()
    job.open("gate")
    late.stdout.wait_for("begins at 0 of 1$")
    job.open("end")
    assert late.wait() == 0, late.everything()
    assert job.daemon.wait() == 0, job.daemon.everything()


def test_two_hosts_that_are_drained_before_the_first_world_do_not_wait_for_each_other(job):
    agents = [job.start_agent("a"), job.start_agent("b", gate="gate")]
    job.await_waiting_worker("a")
    job.ask("drain", "a")
    job.ask("drain", "b")
    job.open("gate")
    assert [agent.wait() for agent in agents] == [0, 0], [agent.everything() for agent in agents]
    job.daemon.signal(signal.SIGINT)
    assert job.daemon.wait() == 130, job.daemon.everything()


def test_last_host_stays_until_a_host_that_comes_has_its_newest_commit(job):
    last = job.start_agent("a", slots=2)
    last.stdout.wait_for("begins at 0 of 2$")
    # For half of the grace another host is awaited to take over while training goes on, then one that takes the commit.
    job.ask("drain", "a", "--grace", "60")
    poll_until(lambda: "it stays to give commit" in job.ask("status"), "a host that keeps its commit")
    assert last.popen.poll() is None
    comes = job.start_agent("b")
    assert last.wait() == 0, last.everything()
    comes.stdout.wait_for(r"begins at [1-9]\d* of 1$")
    assert "neither another host" not in job.daemon.stderr.text
    job.open("end")
    assert comes.wait() == 0, comes.everything()
    assert job.daemon.wait() == 0, job.daemon.everything()
