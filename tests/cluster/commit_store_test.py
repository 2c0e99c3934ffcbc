"""Commits outlive the workers that made them: the agents keep them in memory."""

import os
import signal

from elastic_job import ElasticJob, workers_on


def test_all_workers_killed_at_once_go_on_from_the_last_commit(cluster):
    """After that only the agents' memory has the state."""
    epochs, samples = 6, 240
    job = ElasticJob(
        cluster,
        ["-np", "4", "--min-np", "1", "-H", "a:2,b:2", "--max-failures", "1000/10m"],
        ["--epochs", epochs, "--samples", samples, "--step-seconds", 0.02],
    )
    for kill in range(2):
        job.wait_for_size(4)
        job.wait_for_step(job.log.last_step() + 5)
        world = job.log.newest_world()
        for victim in workers_on(cluster["a"]) + workers_on(cluster["b"]):
            os.kill(victim, signal.SIGKILL)
        job.wait_for(lambda world=world: job.log.newest_world() > world, 60, f"world after kill {kill + 1}")
    rolled_back = job.finish(samples, epochs)
    assert rolled_back <= 2, "more than the step that each kill broke off"
    assert "Horovod: going on from commit" in job.running.everything()
