"""Two hosts lose each other for good, while the daemon reaches both: one of them rests, and the other goes on."""

from elastic_job import JoinedJob
from faults import SLACK

CONNECT_SECONDS = 5
SILENT_SECONDS = 5  # until a worker gives up a connection on which no answer comes
LARGE = "import numpy, horovod.numpy; horovod.numpy.allreduce(numpy.zeros(1000), name='large')"


def check_that_one_rests(job, blocked, seconds):
    job.wait_for_size(4)
    job.wait_for_steps(3)
    job.cluster["a"].set_link(from_host=blocked, to_host=blocked)
    job.daemon.stderr.wait_for(r"host \S+ rests for 30s: it and host \S+ do not reach each other", seconds + SLACK)
    job.wait_for_size(2)
    job.wait_for_steps(3)
    job.cluster["a"].heal()
    job.finish()


def test_one_of_two_hosts_rests(cluster):
    job = JoinedJob(cluster, env={"HOROVOD_GLOO_TIMEOUT_SECONDS": str(CONNECT_SECONDS)})
    check_that_one_rests(job, {"block": cluster["b"].address}, 4 * CONNECT_SECONDS)


def test_one_of_two_hosts_rests_if_only_small_messages_pass(cluster):
    """Worlds form, and break at the first large message, as on a path with a smaller MTU than the hosts assume."""
    job = JoinedJob(cluster, script_flags=("--trouble", LARGE))
    check_that_one_rests(job, {"block": cluster["b"].address, "block_above": 1000}, 4 * SILENT_SECONDS)
