"""Hosts that come and go: lists that change or fail, a host that comes back under its name at once, and hosts that are cut off.

Most of it is tried only with ELASTIC_TEST_ALL_FAULTS=1, see elastic_faults_test.py.
"""

import signal
import time
from pathlib import Path

import pytest

from elastic_job import FaultyJob, JoinedJob, agents_on, workers_on
from faults import ALL, SILENCE, SLACK, chosen, kill, running_job, say
from processes import is_alive, wait_until_none


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
    """The last known hosts stay until the script works again."""
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


@pytest.mark.parametrize("times", [8] if ALL else [])
def test_host_that_flaps(cluster, tmp_path, times):
    discovery = Discovery(tmp_path)
    job = running_job(cluster, hosts=("--host-discovery-script", discovery.script))
    for _ in range(times):
        for hosts in ("echo a:2", "echo a:2; echo b:2"):
            discovery.behaves(hosts)
            runs = discovery.runs()
            job.wait_for(lambda runs=runs: discovery.runs() > runs, 60, "a run of the script")
    job.wait_for_size(4, 90)
    assert job.finish() == 0, "planned changes roll nothing back"


def test_host_that_comes_back_in_the_next_list(cluster, tmp_path):
    """Its drain may have begun or not; no step is lost."""
    discovery = Discovery(tmp_path)
    job = running_job(cluster, hosts=("--host-discovery-script", discovery.script))
    for _ in range(4 if ALL else 1):
        runs = discovery.runs()
        discovery.behaves("echo a:2")
        job.wait_for(lambda runs=runs: discovery.runs() > runs, 60, "a run of the script")
        discovery.behaves("echo a:2; echo b:2")
        job.wait_for_size(4, 90)
        job.wait_for_steps(3)
    assert job.finish() == 0


@pytest.mark.parametrize("times", [3] if ALL else [])
def test_agent_that_is_killed_and_joins_again_at_once(cluster, times):
    """Under the same name, as often as that."""
    job = JoinedJob(cluster)
    job.wait_for_size(4)
    for _ in range(times):
        job.wait_for_steps(3)
        job.begin_trouble()
        kill(agents_on(cluster["b"]))
        job.start_agent("b")
        job.wait_for_world_after(job.trouble[1])
        job.wait_for_size(4, 90)
    job.finish()
    say(job)


@pytest.mark.parametrize("point", ["copied"] if ALL else [])
def test_agent_that_drains_holds_its_name(cluster, point):
    """Until the agent has ended. Another agent that joins under the name sooner is refused with the reason, and disturbs nothing."""
    job = JoinedJob(cluster)
    job.wait_for_size(4)
    world = job.log.newest_world()
    leaving = job.agents["b"]
    with job.held(point, 0):  # so that the drain takes its time
        kill(agents_on(cluster["b"]), signal.SIGTERM)
        job.start_agent("b")
        assert job.agents["b"].wait(60) == 2
    job.running.stdout.wait_for("another agent has attached as host b", SLACK)
    assert leaving.wait(60) == 0
    job.start_agent("b")
    job.wait_for_world_after(world + 1)
    job.wait_for_size(4, 90)
    assert job.finish() == 0


@pytest.mark.parametrize("seconds", [1, 20, 40] if ALL else [])
def test_joined_host_that_is_cut_off(cluster, seconds):
    """Its agent looks for the daemon for 30 s, and takes up work again if it finds it; then it has to be started again."""
    job = JoinedJob(cluster)
    job.wait_for_size(4)
    job.wait_for_steps(3)
    job.begin_trouble()
    cluster["b"].cut_both()
    time.sleep(seconds)  # the fault's duration
    cluster["b"].heal()
    if seconds > 30:
        assert job.agents["b"].wait(SLACK) == 1
        job.start_agent("b")
    job.wait_for_steps(5)
    job.wait_for_size(4, 90)
    assert (job.log.newest_world() > job.trouble[1]) == (seconds > SILENCE)
    job.finish()
    say(job)


def test_host_whose_address_changes(cluster):
    """Its agent comes back from the new address, and its new workers and the source of its commits listen there."""
    host = cluster["b"]
    old = "".join(f"{int(part):02X}" for part in reversed(host.address.split(".")))
    job = JoinedJob(cluster)
    job.wait_for_size(4)
    job.wait_for_steps(3)
    world = job.log.newest_world()
    was = host.address
    host.change_address("10.77.0.77")
    job.running.stdout.wait_for(f"this host's address is 10.77.0.77 now, and was {was}", 60)
    job.wait_for_world_after(world)
    job.wait_for_size(4)
    job.wait_for_steps(3)
    assert [port for port in host.ports() if f" {old}:" in port] == []
    job.finish()


def test_hosts_that_lose_each_other_but_not_the_daemon(cluster):
    """Silently: no connection ends, and all processes live. Nothing is counted as a failure, and the training continues when the link works again."""
    a, b = cluster["a"], cluster["b"]
    job = FaultyJob(cluster, flags=["--gloo-timeout-seconds", 3, "--max-failures-in-a-row", 0, "--elastic-timeout", 60])
    job.wait_for_size(4)
    job.wait_for_steps(3)
    world = job.log.newest_world()
    for here, there in ((a, b), (b, a)):
        assert here.run(["ip", "route", "add", "blackhole", there.address]).returncode == 0
    job.running.stderr.wait_for(f"world {world + 1} ended before an operation was completed in it", 60)
    for here, there in ((a, b), (b, a)):
        assert here.run(["ip", "route", "del", "blackhole", there.address]).returncode == 0
    job.wait_for_world_after(world + 1)
    job.wait_for_size(4, 90)  # one of the two may rest for 30 s
    assert job.finish() <= 1
    assert f"world {world} ended although no worker had failed: rank" in job.running.stderr.text
    assert " failed: " not in job.running.stderr.text.replace("had failed: ", "")


@pytest.mark.parametrize("daemon", chosen({"separate": JoinedJob, "+of horovodrun": FaultyJob}))
def test_world_that_is_cut_off_as_a_whole(cluster, tmp_path, daemon):
    """Its members can't learn that they are released. The others, even if they are ready, take over only when these have ended."""
    if daemon is JoinedJob:
        job = JoinedJob(
            cluster, hosts=["b"], flags=["--np", "2", "--min-np", "1", "--max-np", "2", "--reattach-timeout", "10"]
        )
        job.wait_for_size(2)
        job.start_agent("a")
    else:
        discovery = Discovery(tmp_path)
        discovery.behaves("echo b:2")
        job = FaultyJob(
            cluster,
            size=2,
            flags=["--max-np", "2", "--spares", "2"],
            hosts=("--host-discovery-script", discovery.script),
        )
        job.wait_for_size(2)
        discovery.behaves("echo b:2; echo a:2")
        job.wait_for(lambda: len(job.log.all("ready")) == 4, 60, "two spares")
    job.wait_for_steps(3)
    cut_off = workers_on(cluster["b"])
    job.begin_trouble()
    cluster["b"].cut_both()
    job.wait_for_world_after(job.trouble[1], 2 * SILENCE + 10 + SLACK)
    assert wait_until_none(lambda: [pid for pid in cut_off if is_alive(pid)], SLACK) == []
    job.wait_for_steps(3)
    cluster["b"].heal()
    if daemon is JoinedJob:
        assert job.agents["b"].wait(SLACK) == 1
        job.start_agent("b")
    job.wait_for_size(2)
    job.finish(from_the_start=True)  # all commits were on that host
    say(job)
