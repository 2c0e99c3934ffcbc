"""Commits outlive the host on which they were made: while the whole world is on one host, another one keeps copies in memory."""

import json
import signal

import pytest

from elastic_job import JoinedJob, agents_on, workers_on
from faults import kill

# Far longer than a copy takes, so that at most the newest commit is not copied yet.
STEP = ("--step-seconds", "0.3")


class CopiedJob(JoinedJob):
    def __init__(self, cluster, **limits):
        self._events = cluster.directory / "events"
        flags = [word for name, value in limits.items() for word in ("--" + name.replace("_", "-"), str(value))]
        super().__init__(cluster, flags=[*flags, "--max-failures", "1000/10m", "--event-log", self._events])

    def flags(self, cluster):
        return [*super().flags(cluster), *STEP]

    def keepers(self):
        """The hosts that have said that they keep copies, in order."""
        events = [json.loads(line) for line in self._events.read_text().splitlines()]
        return [event["host"] for event in events if event["kind"] == "commits_kept"]

    def wait_for_keeper(self, host, count=1):
        self.wait_for(lambda: self.keepers().count(host) >= count, 60, f"a copy on {host}")

    def goes_on(self, world, size):
        """After the loss of a host in `world`: from the newest commit, or the one before."""
        self.wait_for_world_after(world, 90)
        self.wait_for_size(size, 90)
        before = max(entry["step"] for entry in self.complete_log().all("step") if entry["world"] <= world)
        start = min(steps for number, (_, steps) in self.log.worlds().items() if number > world)
        assert start >= before - 2, f"begins after step {start}, having done {before}: a step broke off, and a commit"


def everything_on(host):
    return host.find("horovod-agent") + workers_on(host)


@pytest.mark.parametrize("victims", [everything_on, agents_on, workers_on])
def test_the_only_host_with_workers_is_lost(cluster, victims):
    """The other one is a spare, which has never seen the state."""
    job = CopiedJob(cluster, np=2, min_np=1, max_np=2)
    job.wait_for_size(2)
    first, other = ("a", "b") if workers_on(cluster["a"]) else ("b", "a")
    job.wait_for_keeper(other)
    job.wait_for_steps(3)
    world = job.log.newest_world()
    kill(victims(cluster[first]))
    job.goes_on(world, 2)
    if victims is not workers_on:
        job.agents.pop(first).wait()
    job.finish()


def test_hosts_lost_one_after_the_other(cluster):
    """The second one as soon as the first is back and has a copy, before its workers have started."""
    job = CopiedJob(cluster, np=4, min_np=1)
    job.wait_for_size(4)
    job.wait_for_steps(3)
    for victim, other in (("b", "a"), ("a", "b")):
        world = job.log.newest_world()
        kill(everything_on(cluster[victim]))
        job.agents.pop(victim).wait()
        job.goes_on(world, 2)
        had = job.keepers().count(victim)
        job.start_agent(victim)
        job.wait_for_keeper(victim, had + 1)
        world = job.log.newest_world()
        kill(everything_on(cluster[other]))
        job.agents.pop(other).wait()
        job.goes_on(world, 2)
        job.start_agent(other)
        job.wait_for_size(4, 90)
        job.wait_for_steps(3)
    job.finish()


def test_daemon_killed_while_copies_are_kept(cluster):
    job = CopiedJob(cluster, np=2, min_np=1, max_np=2)
    job.wait_for_size(2)
    first, other = ("a", "b") if workers_on(cluster["a"]) else ("b", "a")
    job.wait_for_keeper(other)
    job.kill_daemon(signal.SIGKILL)
    job.start_daemon()
    job.wait_for_steps(5)
    world = job.log.newest_world()
    kill(everything_on(cluster[first]))
    job.agents.pop(first).wait()
    job.goes_on(world, 2)
    job.finish()
