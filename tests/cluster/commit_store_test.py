"""Commits outlive the workers that made them: the agents keep them in memory."""

import signal

from elastic_job import FaultyJob
from faults import all_workers, kill


def test_all_workers_killed_at_once_continue_from_the_last_commit(cluster):
    """After that only the agents' memory has the state."""
    job = FaultyJob(cluster, ["--max-failures", "1000/10m"], ["--step-seconds", 0.02])
    for turn in range(2):
        job.wait_for_size(4)
        job.wait_for_step(job.log.last_step() + 5)
        world = job.log.newest_world()
        victims = all_workers(cluster)
        kill(victims, signal.SIGSTOP)  # or some would continue when the first has died
        kill(victims)
        job.wait_for(lambda world=world: job.log.newest_world() > world, 60, f"world after kill {turn + 1}")
    rolled_back = job.finish()
    assert rolled_back <= 2, "more than the step that each kill broke off"
    assert "Horovod: going on from commit" in job.running.everything()
