"""Trouble in the middle of a commit: one process is held at a point of it (elastic_train.py says which there are), and then it happens.
Training continues from a sealed commit, to the bit.

Most of it is tried only with ELASTIC_TEST_ALL_FAULTS=1, see elastic_faults_test.py.
"""

import signal

import pytest

from elastic_job import JoinedJob, agents_on, workers_on
from faults import ALL, SLACK, STOPPED, all_workers, chosen, kill, pid_of, running_job, say

POINTS = ["begun", "copying", "copied", "agreed", "sealed"]


def cut(cluster, entry):
    cluster[entry["host"]].cut_both()


# what happens, given the entry of the process that is held
FAULTS = {
    "+worker killed": lambda cluster, entry: kill([pid_of(cluster, entry)]),
    "worker stopped": lambda cluster, entry: kill([pid_of(cluster, entry)], signal.SIGSTOP),
    "another worker killed": lambda cluster, entry: kill(
        workers_on(cluster["b" if entry["host"] == "a" else "a"])[-1:]
    ),
    "+all workers killed": lambda cluster, entry: kill(all_workers(cluster)),
    "agent killed": lambda cluster, entry: kill(agents_on(cluster[entry["host"]])),
    "agent stopped": lambda cluster, entry: kill(agents_on(cluster[entry["host"]]), signal.SIGSTOP),
    "link cut": cut,
}


@pytest.mark.parametrize("fault", chosen(FAULTS))
@pytest.mark.parametrize("rank", [3, 0] if ALL else [3])
def test_trouble_in_a_commit(cluster, fault, rank):
    """At each of its points in turn."""
    job = running_job(cluster)
    for point in POINTS if ALL else ["copying", "sealed"]:
        with job.held(point, rank) as entry:
            job.begin_trouble()
            fault(cluster, entry)
            if fault is FAULTS["agent stopped"]:  # until then it would continue
                job.wait_for_world_after(job.trouble[1], STOPPED + SLACK)
        job.wait_for_world_after(job.trouble[1], STOPPED + SLACK)
        if fault is cut:
            cluster[entry["host"]].heal()
        job.wait_for_size(4, 90)
        start = min(steps for world, (_, steps) in job.log.worlds().items() if world > job.trouble[1])
        survived = point == "sealed" and fault in (FAULTS["+worker killed"], FAULTS["+all workers killed"])
        allowed = (entry["commit"],) if survived else (entry["commit"] - 1, entry["commit"])
        assert start in allowed, f"held at {point} of commit {entry['commit']}, and training began again after {start}"
        job.wait_for_steps(3)
        say(job, f"{point}: ")
    job.finish()


@pytest.mark.parametrize("point", POINTS if ALL else ["copied"])
@pytest.mark.parametrize("loses_worker", [False, True] if ALL else [True])
def test_daemon_killed_in_a_commit(cluster, point, loses_worker):
    """Training is not disturbed. A worker that is lost in between is replaced once the daemon is back."""
    job = JoinedJob(cluster)
    job.wait_for_size(4)
    job.wait_for_steps(3)
    world = job.log.newest_world()
    with job.held(point, 3) as entry:
        job.begin_trouble()
        job.kill_daemon(signal.SIGKILL)
        if loses_worker:
            kill([pid_of(cluster, entry)])
    if not loses_worker:
        job.wait_for_step(entry["commit"] + 5)
    job.start_daemon()
    if loses_worker:
        job.wait_for_world_after(world)
        job.wait_for_size(4)
    else:
        job.wait_for_steps(5)
        assert job.log.newest_world() == world
    rolled_back = job.finish()
    assert loses_worker or rolled_back == 0
    say(job)


@pytest.mark.parametrize("point", POINTS if ALL else [])
def test_horovodrun_killed_in_a_commit(cluster, point):
    job = running_job(cluster)
    with job.held(point, 3):
        job.running.signal(signal.SIGKILL)
        assert job.running.wait() == -signal.SIGKILL
    assert cluster.leftovers() == []
