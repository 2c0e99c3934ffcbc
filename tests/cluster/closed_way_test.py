"""Two hosts lose each other for good, while the daemon reaches both: one of them rests, and the other goes on."""

from elastic_job import JoinedJob
from faults import SLACK

CONNECT_SECONDS = 5


def test_one_of_two_hosts_rests(cluster):
    job = JoinedJob(cluster, env={"HOROVOD_GLOO_TIMEOUT_SECONDS": str(CONNECT_SECONDS)})
    job.wait_for_size(4)
    job.wait_for_steps(3)
    blocked = {"block": cluster["b"].address}
    cluster["a"].set_link(from_host=blocked, to_host=blocked)
    job.daemon.stderr.wait_for(
        r"host \S+ rests for 30s: it and host \S+ do not reach each other", 4 * CONNECT_SECONDS + SLACK
    )
    job.wait_for_size(2)
    job.wait_for_steps(3)
    cluster["a"].heal()
    job.finish()
