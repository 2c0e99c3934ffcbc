"""Hosts all of whose processes are frozen, as in a suspended virtual machine or a paused container: their clocks stop, too."""

from elastic_job import JoinedJob, agents_on, workers_on
from faults import SLACK
from freezer import frozen
from processes import is_alive, wait_until_none


def test_host_that_is_suspended_for_longer_than_all_deadlines(cluster, monkeypatch):
    """The others continue in a new world. When the host runs again, its workers are replaced: the daemon no longer accepts their calls."""
    monkeypatch.setenv("HOROVOD_AGENT_TIMEOUT_SECONDS", "5")
    job = JoinedJob(cluster, flags=["--np", "4", "--min-np", "1", "--reattach-timeout", "3"])
    job.wait_for_size(4)
    job.wait_for_steps(3)
    workers = workers_on(cluster["b"])
    assert agents_on(cluster["b"]) and len(workers) == 2
    job.begin_trouble()
    with frozen(cluster["b"].processes()):
        job.wait_for_world_after(job.trouble[1])
        job.wait_for_size(2)
        job.wait_for_steps(20)
    assert wait_until_none(lambda: [pid for pid in workers if is_alive(pid)], SLACK) == []
    job.wait_for_size(4, 90)
    job.finish()
