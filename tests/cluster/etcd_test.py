"""Jobs that are kept in etcd: another daemon takes the leader's place, and what is wrong with etcd does not stop the training.

ELASTIC_TEST_ALL_FAULTS=1 kills the leader sixty times, within the 5 minutes after which workers ask the daemon anew.
"""

import re
import signal
import statistics
import time

import pytest

from elastic_job import workers_on
from etcd_nodes import EtcdJob, EtcdNodes, make_certificate
from faults import ALL, kill, say
from netns import Cluster


@pytest.fixture
def hosts(tmp_path):
    """Two for agents, two for daemons, three for etcd."""
    with Cluster(["a", "b", "d1", "d2", "e1", "e2", "e3"], tmp_path) as running:
        yield running


@pytest.fixture
def nodes(hosts):
    running = EtcdNodes(hosts, ["e1", "e2", "e3"])
    yield running
    running.kill()


@pytest.fixture
def job(hosts, nodes):
    running = EtcdJob(hosts, nodes)
    running.wait_for_size(4)
    running.wait_for_steps(3)
    return running


def other(name):
    return {"d1": "d2", "d2": "d1"}[name]


def test_leader_is_killed(hosts, job):
    """Another daemon becomes the leader and handles failures; no step is lost, and no worker is stopped."""
    world = job.log.newest_world()
    times = []
    leader = "d1"
    for _turn in range(60 if ALL else 2):
        before = job.times_back()
        job.daemons[leader].signal(signal.SIGKILL)
        killed = time.monotonic()
        job.daemons[leader].wait()
        job.wait_until_back(before)
        times.append(time.monotonic() - killed)
        print(f"{times[-1]:.2f}", end=" ", flush=True)
        job.start_daemon(leader)
        leader = other(leader)
        job.wait_for_steps(3)
        assert job.log.newest_world() == world, job.explain()
    print(f"led again after {statistics.median(times):.2f} s, {max(times):.2f} s at worst, of {len(times)}")
    job.check_steps()
    job.begin_trouble()
    kill(workers_on(hosts["b"])[:1])
    job.wait_for_world_after(world)
    job.wait_for_size(4)
    job.finish()
    say(job)


def test_host_of_the_leader_is_lost(hosts, job):
    """Neither agents nor etcd are notified of the loss."""
    world, before, cut = job.log.newest_world(), job.times_back(), time.monotonic()
    hosts["d1"].cut()
    job.wait_until_back(before)
    print(f"led again after {time.monotonic() - cut:.2f} s")
    job.wait_for_steps(3)
    assert job.log.newest_world() == world
    job.check_steps()
    lost = job.daemons.pop("d1")
    lost.signal(signal.SIGKILL)
    lost.wait()
    job.finish()


def test_leader_is_asked_to_end(job):
    """SIGTERM hands the job over, without a wait for the lease. Meanwhile a standby daemon is healthy, but not ready."""
    before = job.times_back()
    assert [job.page("d1", path) for path in ("/healthz", "/readyz")] == [200, 200]
    assert [job.page("d2", path) for path in ("/healthz", "/readyz")] == [200, 503]
    job.daemons["d1"].signal(signal.SIGTERM)
    assert job.daemons["d1"].wait() == 143, job.explain()
    job.wait_for_leader("d2")
    job.wait_until_back(before)
    assert job.page("d2", "/readyz") == 200
    job.start_daemon("d1")
    job.finish()
    job.check_steps()


def test_leader_is_cut_off_from_etcd(hosts, job, nodes):
    """It decides nothing, drops its agents in time, and stands by; the new leader handles failures in between."""
    before, world = job.times_back(), job.log.newest_world()
    for node in nodes.hosts:
        assert hosts["d1"].run(["ip", "route", "add", "blackhole", node.address]).returncode == 0
    job.wait_for_leader("d2")
    known = job.events("d1")
    job.begin_trouble()
    kill(workers_on(hosts["b"])[:1])
    job.wait_until_back(before)
    job.daemons["d1"].stderr.wait_for("has not answered for .* another daemon may lead the job.*; stands by")
    assert job.events("d1") == known, "it has done something"
    job.wait_for_world_after(world)
    for node in nodes.hosts:
        assert hosts["d1"].run(["ip", "route", "del", "blackhole", node.address]).returncode == 0
    job.daemons["d1"].stderr.wait_for(f"stands by: the job is led by {hosts['d2'].address}")
    job.wait_for_size(4)
    job.finish()
    say(job)


def test_leader_is_stopped(hosts, job):
    """SIGSTOP: when it continues, another daemon is the leader."""
    before = job.times_back()
    pid = next(pid for pid in hosts["d1"].find("horovod-rendezvousd"))
    kill([pid], signal.SIGSTOP)
    job.wait_for_leader("d2")
    kill([pid, job.daemons["d1"].popen.pid], signal.SIGCONT)  # nsenter, which started it, stops with it
    job.daemons["d1"].stderr.wait_for("stands by: the job is led by")
    job.wait_until_back(before)
    job.finish()
    job.check_steps()


def test_leader_of_etcd_is_killed(job, nodes):
    """The job is not disturbed."""
    world = job.log.newest_world()
    victim = nodes.leader()
    nodes.kill(victim)
    kill(workers_on(job.cluster["b"])[:1])
    job.wait_for_world_after(world)
    job.wait_for_size(4)
    nodes.start(victim)
    job.finish()
    assert job.daemons["d2"].stdout.text == "", "it has led"


def test_etcd_is_away(job, nodes):
    """etcd is away for 20 s: training continues, and the daemon reports the cause."""
    before, world = job.times_back(), job.log.newest_world()
    began = time.time()
    nodes.kill()
    job.daemons["d1"].stderr.wait_for("has not answered for .*; stands by", 60)
    job.wait_for(lambda: job.log.all("step")[-1]["time"] > began + 20, 60, "a step after 20 s")
    for host in nodes.hosts:
        nodes.start(host)
    nodes.wait()
    job.wait_until_back(before, 90)
    job.wait_for_steps(3)
    assert job.log.newest_world() == world
    job.check_steps()
    job.finish()


def test_etcd_has_no_space(hosts, tmp_path):
    """The daemon waits, reports it, and continues once there is space."""
    nodes = EtcdNodes(hosts, ["e1", "e2", "e3"], "--quota-backend-bytes", str(2 << 20))
    try:
        job = EtcdJob(hosts, nodes)
        job.wait_for_size(4)
        fill_up(nodes)
        world = job.log.newest_world()
        kill(workers_on(hosts["b"])[:1])
        job.daemons["d1"].stderr.wait_for("database space exceeded .free some", 60)
        make_room(nodes)
        job.daemons["d1"].stderr.wait_for("works again, after", 60)
        job.wait_for_world_after(world)
        job.wait_for_size(4)
        job.finish()
    finally:
        nodes.kill()


def fill_up(nodes):
    for number in range(40):
        try:
            nodes.ctl("put", f"filler/{number}", "x" * 100000)
        except AssertionError as error:
            assert "space exceeded" in str(error)
            return
    raise AssertionError("etcd has no quota")


def make_room(nodes):
    nodes.ctl("del", "--prefix", "filler/")
    revision = re.search(r'"Revision" : (\d+)', nodes.ctl("get", "filler/0", "--write-out=fields")).group(1)
    nodes.ctl("compact", revision)
    nodes.ctl("defrag")
    nodes.ctl("alarm", "disarm")


def test_etcd_with_certificates_and_users(tmp_path):
    """Both sides show certificates, and the user may touch nothing but /horovod/."""
    with Cluster(["d1", "e1"], tmp_path) as hosts:
        certificate = make_certificate(tmp_path, hosts["e1"].address)
        nodes = EtcdNodes(hosts, ["e1"], certificate=certificate)
        for words in (
            ["user", "add", "root:secret"], ["user", "grant-role", "root", "root"], ["user", "add", "trainer:word"],
            ["role", "add", "horovod"], ["role", "grant-permission", "horovod", "--prefix=true", "readwrite", "/horovod/"],
            ["user", "grant-role", "trainer", "horovod"], ["auth", "enable"],
        ):  # fmt: skip
            nodes.ctl(*words)
        daemon = ["horovod-rendezvousd", "--listen", f"{hosts['d1'].address}:7000", "--np", "1", "--job", "train",
                  "--etcd", nodes.endpoints, "--token-file", tmp_path / "token", "--etcd-ca", certificate.ca]  # fmt: skip
        shown = ["--etcd-cert", certificate.certificate, "--etcd-key", certificate.key]
        assert_refused(hosts["d1"].run([*daemon, *shown]), "permission denied")  # of the user in the certificate
        password = tmp_path / "password"
        password.write_text("wrong")
        user = ["--etcd-user", "trainer", "--etcd-password-file", password]
        assert_refused(hosts["d1"].run([*daemon, *shown, *user]), "invalid user ID or password")
        password.write_text("word\n")
        running = hosts["d1"].start_command([*daemon, *shown, *user])
        running.stdout.wait_for(r"^\S+:7000$")
        running.signal(signal.SIGINT)
        assert running.wait() == 130, running.everything()
        nodes.kill()
        assert hosts.leftovers() == []


def assert_refused(ran, why):
    assert ran.returncode == 2 and ran.stderr.count("\n") == 1 and why in ran.stderr, ran
