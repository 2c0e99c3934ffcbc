"""Faults of all kinds in elastic jobs: the survivors continue, hosts and workers come back if they can, and every sample counts once.

Most faults are tried only if asked for, since they take half an hour together (one host's, the daemon's and those in a commit included):

    ELASTIC_TEST_ALL_FAULTS=1 tools/run --torch debian python -m pytest -s tests/cluster/*_faults_test.py

Each says how long the training took to go on (-s shows it), and afterwards the logs of all processes are looked through: there was one world at a
time, and each began with what had been committed (tests/support/world_checks.py).
"""

import signal
import time

import pytest

from elastic_job import FaultyJob, agents_on, workers_on
from faults import ALL, SILENCE, SLACK, STOPPED, all_workers, chosen, kill, running_job, say
from processes import is_alive, wait_until_none

# ---- the network


CUTS = {
    "both ways": lambda host: host.cut_both(),
    "+what the host says": lambda host: host.cut_from(),
    "what the host hears": lambda host: host.cut_to(),
}


@pytest.mark.parametrize("cut", chosen(CUTS))
@pytest.mark.parametrize("name", ["b", "a"] if ALL else ["b"])
def test_cut_link_that_heals_later(cluster, cut, name):
    """The others continue without the host, whose workers end, and use it again later."""
    job = running_job(cluster)
    cut_off = workers_on(cluster[name])
    job.begin_trouble()
    cut(cluster[name])
    job.wait_for_size(2, SILENCE + SLACK)
    assert wait_until_none(lambda: [pid for pid in cut_off if is_alive(pid)], SILENCE + SLACK) == []
    job.wait_for_steps(5)
    cluster[name].heal()
    job.wait_for_size(4, 90)
    job.finish()
    say(job)


# ---- processes


def kill_sshd(cluster):
    cluster["b"].kill_sshd()
    cluster["b"].start_sshd()


# what happens; seconds until it is noticed
PROCESS_FAULTS = {
    "worker killed": (lambda cluster: kill(workers_on(cluster["b"])[:1]), 0),
    "all workers killed": (lambda cluster: kill(all_workers(cluster)), 0),
    "+worker stopped for good": (lambda cluster: kill(workers_on(cluster["b"])[:1], signal.SIGSTOP), STOPPED),
    "rank 0 stopped for good": (lambda cluster: kill(workers_on(cluster["a"])[:1], signal.SIGSTOP), STOPPED),
    "agent stopped for good": (lambda cluster: kill(agents_on(cluster["b"]), signal.SIGSTOP), STOPPED),
    "agent killed": (lambda cluster: kill(agents_on(cluster["b"])), 0),
    "sshd killed": (kill_sshd, 0),
}


@pytest.mark.parametrize("fault", chosen(PROCESS_FAULTS))
def test_process_fails(cluster, fault):
    happen, noticed = fault
    job = running_job(cluster)
    job.begin_trouble()
    happen(cluster)
    job.wait_for_world_after(job.trouble[1], noticed + SLACK)
    job.wait_for_size(4, 90)
    job.finish()
    say(job)


def heal(cluster):
    cluster["b"].heal()


def both_ways(**faults):
    return lambda cluster: cluster["b"].set_link(from_host=faults, to_host=faults)


def let_go_on(cluster):
    kill(workers_on(cluster["b"]) + agents_on(cluster["b"]), signal.SIGCONT)


# seconds, how it begins, how it ends, and whether the world breaks: it does (True), does not (False), may (None)
PASSING_TROUBLE = {
    "link cut both ways, 1 s": (1, both_ways(loss=1), heal, False),
    "link cut one way, 1 s": (1, lambda cluster: cluster["b"].cut_from(), heal, False),
    "link cut both ways, 20 s": (20, both_ways(loss=1), heal, True),
    "30 % loss, 10 s": (10, both_ways(loss=0.3), heal, None),
    "500 ms delay, 10 s": (10, both_ways(delay=0.5), heal, False),
    "worker stopped, 3 s": (3, lambda cluster: kill(workers_on(cluster["b"])[:1], signal.SIGSTOP), let_go_on, False),
    "agent stopped, 7 s": (7, lambda cluster: kill(agents_on(cluster["b"]), signal.SIGSTOP), let_go_on, False),
}


@pytest.mark.parametrize("trouble", chosen(PASSING_TROUBLE))
def test_trouble_that_passes(cluster, trouble):
    seconds, begin, end, breaks = trouble
    job = running_job(cluster)
    job.begin_trouble()
    begin(cluster)
    time.sleep(seconds)  # the fault's duration
    end(cluster)
    job.wait_for_steps(5)
    job.wait_for_size(4, 90)
    if breaks is not None:
        assert (job.log.newest_world() > job.trouble[1]) == breaks
    job.finish()
    say(job)


@pytest.mark.parametrize("milliseconds", [5, 10, 20, 50, 100, 200] if ALL else [20])
def test_second_kill_during_the_reset(cluster, milliseconds):
    job = running_job(cluster)
    job.begin_trouble()
    first, second = workers_on(cluster["b"])[0], workers_on(cluster["a"])[0]
    kill([first])
    time.sleep(milliseconds / 1000)  # to meet the reset in all its phases
    kill([second])
    job.wait_for_world_after(job.trouble[1])
    job.wait_for_size(4, 90)
    job.finish()
    say(job)


@pytest.mark.parametrize("victim", ["newcomer", "survivor", "rank 0"] if ALL else ["newcomer"])
def test_killed_while_the_state_is_synchronized(cluster, victim):
    """The synchronisation takes a while, so there is time for the kill."""
    job = running_job(cluster, script_flags=["--megabytes", "200" if ALL else "40"])
    old = all_workers(cluster)
    kill(workers_on(cluster["b"])[:1])
    old -= {pid for pid in old if pid not in all_workers(cluster)}
    job.wait_for_world_after(job.log.newest_world(), 90)
    job.wait_for(lambda: job.log.resets() > 3, 90, "the world with the newcomer")
    newcomers = all_workers(cluster) - old
    job.begin_trouble()
    survivors_on_b = [pid for pid in workers_on(cluster["b"]) if pid in old]
    kill({"newcomer": list(newcomers), "survivor": survivors_on_b, "rank 0": workers_on(cluster["a"])[:1]}[victim])
    job.wait_for_world_after(job.trouble[1], 90)
    job.wait_for_size(4, 120)
    job.finish()
    say(job)


FORMING = {
    "+worker killed": lambda cluster: kill((workers_on(cluster["b"]) or workers_on(cluster["a"]))[:1]),
    "agent killed": lambda cluster: kill(agents_on(cluster["b"])),
    "worker stopped": lambda cluster: kill((workers_on(cluster["b"]) or workers_on(cluster["a"]))[:1], signal.SIGSTOP),
    "link cut": lambda cluster: cluster["b"].cut_both(),
}


@pytest.mark.parametrize("started", [1, 2, 4] if ALL else [1])
@pytest.mark.parametrize("fault", chosen(FORMING))
def test_fault_while_the_first_world_forms(cluster, fault, started):
    job = FaultyJob(cluster)
    job.wait_for(lambda: len(job.log.all("started")) >= started, 60, f"{started} workers started")
    job.begin_trouble()
    fault(cluster)
    if fault is FORMING["link cut"]:
        job.running.stderr.wait_for("host b was lost", SILENCE + SLACK)
        cluster["b"].heal()  # the first world needs all 4
    job.wait_for_steps(3, 90)
    job.wait_for_size(4, 90)
    job.finish()
    say(job)


@pytest.mark.parametrize(
    "number, exit_code", [(signal.SIGKILL, -signal.SIGKILL)] + ALL * [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_end_of_horovodrun_ends_everything(cluster, number, exit_code):
    job = running_job(cluster)
    job.running.signal(number)
    assert job.running.wait() == exit_code, job.running.everything()
    assert cluster.leftovers() == []


# ---- the script


EXITS = {"+sys.exit": "sys.exit(0)", "os._exit": "os._exit(0)"}


@pytest.mark.parametrize("code", chosen(EXITS))
def test_worker_that_exits_with_0_is_replaced(cluster, code):
    job = FaultyJob(cluster, script_flags=["--trouble", f"if (world, rank, step) == (1, 1, 8): {code}"])
    job.wait_for_size(4)
    job.wait_for_world_after(1)
    job.wait_for_size(4)
    job.finish()
    assert "rank 1 on host a failed" in job.running.stderr.text, job.running.everything()


def test_error_before_the_first_commit_ends_the_job(cluster):
    job = FaultyJob(cluster, script_flags=["--trouble", "if step == 0: raise ValueError('no such column')"])
    assert job.running.wait(60) == 1, job.running.everything()
    said = job.running.stderr.text
    assert "ValueError: no such column" in said and "Traceback" in said, said
    assert list(job.log.worlds()) == [1], "no other world trains"
    assert cluster.leftovers() == []


def test_crash_loop_ends_by_the_budget(cluster):
    trouble = "if step >= 3 and rank == 0: os._exit(3)"
    job = FaultyJob(cluster, flags=["--max-failures", "3/10m"], script_flags=["--trouble", trouble])
    assert job.running.wait(120) == 3, job.running.everything()
    assert cluster.leftovers() == []


def test_newcomers_that_fail_again_and_again_do_not_disturb(cluster):
    """While the file exists, new processes fail before they are in any world."""
    broken = cluster.directory / "broken"
    job = FaultyJob(cluster, script_flags=["--fail-at-start-file", broken])
    job.wait_for_size(4)
    job.wait_for_steps(3)
    broken.touch()
    job.begin_trouble()
    kill(workers_on(cluster["b"])[:1])
    job.wait_for_size(3)
    job.running.stderr.wait_for("exit code 7", 60, count=2)
    job.wait_for_steps(5)
    job.finish()
    say(job)
