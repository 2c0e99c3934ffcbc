"""Hosts that come and go: lists that change or fail, a host that comes back under its name at once.

Most of it is tried only with ELASTIC_TEST_ALL_FAULTS=1, see elastic_faults_test.py.
"""

import signal
from pathlib import Path

import pytest
from elastic_job import JoinedJob, agents_on
from faults import ALL, chosen, kill, running_job, say

class Discovery:
    """A script whose behaviour can be changed while it is used."""

    def __init__(self, directory):
        self._behaviour = directory / "behaviour"
        self.script = directory / "discover.sh"
        self.behaves("echo a:2; echo b:2")
        self.script.write_text(f"#!/bin/sh\necho >> {directory}/runs\n. {self._behaviour}\n")
        self.script.chmod(0o755)
        self._runs = directory / "runs"

    def behaves(self, commands):
        new = Path(f"{self._behaviour}.new")
        new.write_text(commands + "\n")
        new.rename(self._behaviour)

    def runs(self):
        return self._runs.read_text().count("\n")


@pytest.mark.parametrize("behaviour", chosen({
    "fails": "exit 1", "rubbish": "head -c 3000 /dev/urandom", "+hangs": "sleep 100000", "nothing": "true",
}))  # fmt: skip
def test_discovery_script_that_does_not_work(cluster, tmp_path, behaviour):
    """What was known holds until it works again."""
    discovery = Discovery(tmp_path)
    job = running_job(cluster, hosts=("--host-discovery-script", discovery.script))
    discovery.behaves(behaviour)
    runs = discovery.runs()
    job.wait_for(lambda: discovery.runs() >= runs + (1 if "sleep" in behaviour else 3), 60, "runs of the script")
    job.wait_for_steps(20)
    if behaviour != "true":
        assert job.log.newest_world() == 1
    discovery.behaves("echo a:2; echo b:2")
    job.wait_for_size(4)
    assert job.finish() == 0


@pytest.mark.parametrize("times", [8] if ALL else [2])
def test_host_that_flaps(cluster, tmp_path, times):
    discovery = Discovery(tmp_path)
    job = running_job(cluster, hosts=("--host-discovery-script", discovery.script))
    for _ in range(times):
        for hosts in ("echo a:2", "echo a:2; echo b:2"):
            discovery.behaves(hosts)
            runs = discovery.runs()
            job.wait_for(lambda: discovery.runs() > runs, 30, "a run of the script")
    job.wait_for_size(4, 90)
    assert job.finish() == 0, "planned changes roll nothing back"


def test_host_that_comes_back_in_the_next_list(cluster, tmp_path):
    """Its drain may have begun or not; no step is lost."""
    discovery = Discovery(tmp_path)
    job = running_job(cluster, hosts=("--host-discovery-script", discovery.script))
    for _ in range(4 if ALL else 1):
        runs = discovery.runs()
        discovery.behaves("echo a:2")
        job.wait_for(lambda: discovery.runs() > runs, 30, "a run of the script")
        discovery.behaves("echo a:2; echo b:2")
        job.wait_for_size(4, 90)
        job.wait_for_steps(3)
    assert job.finish() == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM] if ALL else [signal.SIGKILL])
def test_agent_that_joins_again_at_once(cluster, number):
    """Under the same name, while the daemon may not know yet that the old one has gone; a name that is still held is refused in one line."""
    job = JoinedJob(cluster)
    job.wait_for_size(4)
    for _ in range(3 if ALL else 1):
        job.wait_for_steps(3)
        job.begin_trouble()
        kill(agents_on(cluster["b"]), number)
        job.start_agent("b")
        job.wait_for_world_after(job.trouble[1])
        job.wait_for_size(4, 90)
    job.finish()
    say(job)
