"""The daemon is killed and restarted: the training continues, and failures in between are handled afterwards.

Most of it is tried only with ELASTIC_TEST_ALL_FAULTS=1, see elastic_faults_test.py.
"""

import signal
import statistics
import time

import pytest

from elastic_job import JoinedJob, workers_on
from faults import ALL, SLACK, kill, say

BACK_AGAIN = "the rendezvous daemon is there again"
REATTACH = 30  # seconds that agents and workers wait for a daemon


def train_without_daemon(job, steps):
    """Kills it, lets the others train, and starts it again. Returns how many seconds after its start all agents are there again."""
    known = job.running.stdout.text.count(BACK_AGAIN)
    job.kill_daemon(signal.SIGKILL)
    job.wait_for_steps(steps)
    started = time.monotonic()
    job.start_daemon()
    job.running.stdout.wait_for(BACK_AGAIN, REATTACH + SLACK, count=known + len(job.agents))
    return time.monotonic() - started


def test_daemon_is_killed_and_started_again(cluster):
    """No step is lost while it is away, and afterwards failures are seen to as before."""
    job = JoinedJob(cluster)
    job.wait_for_size(4)
    job.wait_for_steps(3)
    world = job.log.newest_world()
    times = []
    for _ in range(10 if ALL else 1):
        times.append(train_without_daemon(job, 10))
        job.wait_for_steps(5)
        assert job.log.newest_world() == world
    print(
        f"all agents were there {statistics.median(times):.2f} s after the daemon's start, {max(times):.2f} s at worst"
    )
    steps = [entry["step"] for entry in job.complete_log().all("step")]
    assert sorted(set(steps)) == list(range(1, max(steps) + 1)) and all(
        steps.count(step) <= 4 for step in set(steps)
    ), steps
    job.begin_trouble()
    kill(workers_on(cluster["b"])[:1])
    job.wait_for_world_after(world)
    job.wait_for_size(4)
    job.finish()
    say(job)


@pytest.mark.parametrize("milliseconds", [0, 5, 10, 20, 50, 100, 300] if ALL else [])
@pytest.mark.parametrize("victim", ["b", "a"])
def test_daemon_is_killed_during_a_reset(cluster, milliseconds, victim):
    job = JoinedJob(cluster)
    job.wait_for_size(4)
    job.wait_for_steps(3)
    job.begin_trouble()
    kill(workers_on(cluster[victim])[:1])
    time.sleep(milliseconds / 1000)  # to meet the reset in all its phases
    job.kill_daemon(signal.SIGKILL)
    job.start_daemon()
    job.wait_for_world_after(job.trouble[1])
    job.wait_for_size(4, 90)
    job.finish()
    say(job)
