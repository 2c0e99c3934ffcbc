"""Two hosts lose each other permanently, while the daemon reaches both: one of them rests, and the others continue."""

from elastic_job import JoinedJob
from faults import SLACK
from netns import Cluster

CONNECT_SECONDS = 5
SHORT_CONNECT = {"HOROVOD_GLOO_TIMEOUT_SECONDS": str(CONNECT_SECONDS)}
SILENT_SECONDS = 5  # until a worker gives up a connection on which no answer comes
LARGE = "import numpy, horovod.numpy; horovod.numpy.allreduce(numpy.zeros(1000), name='large')"


def check_that_one_rests(
    job, blocked, seconds, message=r"host \S+ rests for 30s: it and host \S+ do not reach each other"
):
    """`blocked`: how host a's cable is from now on, as in bad_link.py."""
    size = 2 * len(job.agents)
    job.wait_for_size(size)
    job.wait_for_steps(3)
    job.cluster["a"].set_link(from_host=blocked, to_host=blocked)
    job.daemon.stderr.wait_for(message, seconds + SLACK)
    job.wait_for_size(size - 2)
    job.wait_for_steps(3)
    job.cluster["a"].heal()
    job.finish()


def test_one_of_two_hosts_rests(cluster):
    job = JoinedJob(cluster, env=SHORT_CONNECT)
    check_that_one_rests(job, {"block": [cluster["b"].address]}, 4 * CONNECT_SECONDS)


def test_one_of_two_hosts_rests_if_only_small_messages_pass(cluster):
    """Worlds form, and break at the first large message, as on a path with a smaller MTU than the hosts assume."""
    job = JoinedJob(cluster, script_flags=("--trouble", LARGE))
    check_that_one_rests(job, {"block": [cluster["b"].address], "block_above": 1000}, 4 * SILENT_SECONDS)


def test_the_host_rests_that_no_other_one_reaches(tmp_path):
    with Cluster(["a", "b", "c", "launcher"], tmp_path) as cluster:
        job = JoinedJob(cluster, hosts=("b", "a", "c"), flags=("--np", "6", "--min-np", "2"), env=SHORT_CONNECT)
        blocked = {"block": [cluster["b"].address, cluster["c"].address]}
        message = r"host a rests for 30s: it and hosts? \S+"
        check_that_one_rests(job, blocked, 4 * CONNECT_SECONDS, message)
