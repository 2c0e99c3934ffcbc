"""Elastic jobs in trouble of all kinds: the survivors go on, whatever can come back does, and what was trained adds up.

Most faults are tried only if asked for, since they take a quarter of an hour together:

    ELASTIC_TEST_ALL_FAULTS=1 tools/run --torch debian python -m pytest -s tests/cluster/elastic_faults_test.py

Each says how long the training took to go on (-s shows it).
"""

import os
import signal
import time
from pathlib import Path

import pytest
from elastic_job import FaultyJob, JoinedJob, agents_on, workers_on

ALL = os.environ.get("ELASTIC_TEST_ALL_FAULTS", "") not in ("", "0")


def chosen(cases):
    """Test cases by name: those that are always tried, whose names begin with "+", or all of them."""
    return [pytest.param(case, id=name.strip("+")) for name, case in cases.items() if ALL or name.startswith("+")]


def say(job):
    recovered, longest = job.seconds_to_recover()
    print(f"first step of a later world after {recovered} s, longest time without a step {longest} s")


def running_job(cluster, **options):
    """Of 4 workers, a few steps after its start."""
    job = FaultyJob(cluster, **options)
    job.wait_for_size(4)
    job.wait_for_steps(3)
    return job


# ---- the network


CUTS = {
    "both ways": lambda host: host.cut_both(),
    "+what the host says": lambda host: host.cut_from(),
    "what the host hears": lambda host: host.cut_to(),
}


@pytest.mark.parametrize("cut", chosen(CUTS))
@pytest.mark.parametrize("name", ["b", "a"] if ALL else ["b"])
def test_cut_link_that_heals_later(cluster, cut, name):
    """The others go on without the host, and take it back."""
    job = running_job(cluster)
    job.begin_trouble()
    cut(cluster[name])
    job.wait_for_size(2)
    job.wait_for_steps(5)
    cluster[name].heal()
    job.wait_for_size(4, 90)
    job.finish()
    say(job)


# ---- processes


def kill(pids, number=signal.SIGKILL):
    for pid in pids:
        os.kill(pid, number)


def kill_sshd(cluster):
    cluster["b"].kill_sshd()
    cluster["b"].start_sshd()


PROCESS_FAULTS = {
    "worker killed": lambda cluster: kill(workers_on(cluster["b"])[:1]),
    "all workers killed": lambda cluster: kill(workers_on(cluster["a"]) + workers_on(cluster["b"])),
    "+worker stopped for good": lambda cluster: kill(workers_on(cluster["b"])[:1], signal.SIGSTOP),
    "rank 0 stopped for good": lambda cluster: kill(workers_on(cluster["a"])[:1], signal.SIGSTOP),
    "+agent stopped for good": lambda cluster: kill(agents_on(cluster["b"]), signal.SIGSTOP),
    "agent killed": lambda cluster: kill(agents_on(cluster["b"])),
    "+sshd killed": kill_sshd,
}


@pytest.mark.parametrize("fault", chosen(PROCESS_FAULTS))
def test_process_fails(cluster, fault):
    job = running_job(cluster)
    job.begin_trouble()
    fault(cluster)
    job.wait_for_world_after(job.trouble[1])
    job.wait_for_size(4, 90)
    job.tell_to_end()
    assert job.running.wait(120) == 0, job.running.everything()
    assert cluster.leftovers() == []
    if fault is not PROCESS_FAULTS["all workers killed"]:  # which had no commit but in memory
        job.check()
    say(job)


def heal(cluster):
    cluster["b"].heal()


def both_ways(**faults):
    return lambda cluster: cluster["b"].set_link(from_host=faults, to_host=faults)


def let_go_on(cluster):
    kill(workers_on(cluster["b"]) + agents_on(cluster["b"]), signal.SIGCONT)


# seconds, how it begins, how it ends
PASSING_TROUBLE = {
    "link cut both ways, 1 s": (1, both_ways(loss=1), heal),
    "link cut one way, 1 s": (1, lambda cluster: cluster["b"].cut_from(), heal),
    "link cut both ways, 20 s": (20, both_ways(loss=1), heal),
    "30 % loss, 10 s": (10, both_ways(loss=0.3), heal),
    "500 ms delay, 10 s": (10, both_ways(delay=0.5), heal),
    "worker stopped, 3 s": (3, lambda cluster: kill(workers_on(cluster["b"])[:1], signal.SIGSTOP), let_go_on),
    "+agent stopped, 3 s": (3, lambda cluster: kill(agents_on(cluster["b"]), signal.SIGSTOP), let_go_on),
}


@pytest.mark.parametrize("trouble", chosen(PASSING_TROUBLE))
def test_trouble_that_passes(cluster, trouble):
    seconds, begin, end = trouble
    job = running_job(cluster)
    job.begin_trouble()
    begin(cluster)
    time.sleep(seconds)  # so long it lasts
    end(cluster)
    job.wait_for_steps(5)
    job.wait_for_size(4, 90)
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


def all_workers(cluster):
    return {pid for name in ("a", "b") for pid in workers_on(cluster[name])}


@pytest.mark.parametrize("victim", ["newcomer", "survivor", "rank 0"] if ALL else ["newcomer"])
def test_killed_while_the_state_is_synchronized(cluster, victim):
    """Which takes a while."""
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
    job.wait_for_steps(3, 90)
    if fault is FORMING["link cut"]:
        cluster["b"].heal()
    job.wait_for_size(4, 90)
    job.finish()
    say(job)


@pytest.mark.parametrize("number, exit_code", [(signal.SIGKILL, -signal.SIGKILL)] + ALL * [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_end_of_horovodrun_ends_everything(cluster, number, exit_code):
    job = running_job(cluster)
    job.running.signal(number)
    assert job.running.wait(30) == exit_code, job.running.everything()
    assert cluster.leftovers() == []


# ---- the daemon


def test_daemon_is_killed_and_started_again(cluster):
    """The training goes on meanwhile, and afterwards failures are seen to again."""
    job = JoinedJob(cluster)
    job.wait_for_size(4)
    world = job.log.newest_world()
    job.kill_daemon(signal.SIGKILL)
    job.wait_for_steps(20)
    job.start_daemon()
    job.wait_for_steps(20)
    assert job.log.newest_world() == world
    job.begin_trouble()
    kill(workers_on(cluster["b"])[:1])
    job.wait_for_world_after(world)
    job.wait_for_size(4)
    job.finish()
    say(job)


@pytest.mark.parametrize("milliseconds", [0, 5, 10, 20, 50, 100, 300] if ALL else [10])
@pytest.mark.parametrize("victim", ["b", "a"] if ALL else ["b"])
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
    assert len(job.log.all("started")) == 4, "nobody was started again"
    assert cluster.leftovers() == []


def test_crash_loop_ends_by_the_budget(cluster):
    trouble = "if step >= 3 and rank == 0: os._exit(3)"
    job = FaultyJob(cluster, flags=["--max-failures", "3/10m"], script_flags=["--trouble", trouble])
    assert job.running.wait(120) == 3, job.running.everything()
    assert cluster.leftovers() == []


def test_newcomers_that_fail_again_and_again_do_not_disturb(cluster):
    """The file tells new processes to fail before they are in any world."""
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


# ---- hosts that come and go


class Discovery:
    """A script whose behaviour can be changed while it is used."""

    def __init__(self, directory):
        self._behaviour = directory / "behaviour"
        self.script = directory / "discover.sh"
        self.behaves("echo a:2; echo b:2")
        self.script.write_text(f"#!/bin/sh\necho >> {directory}/runs\n. {self._behaviour}\n")
        self.script.chmod(0o755)
        self._runs = directory / "runs"

    def behaves(self, commands):
        new = Path(f"{self._behaviour}.new")
        new.write_text(commands + "\n")
        new.rename(self._behaviour)

    def runs(self):
        return self._runs.read_text().count("\n")


@pytest.mark.parametrize("behaviour", chosen({
    "fails": "exit 1", "rubbish": "head -c 3000 /dev/urandom", "+hangs": "sleep 100000", "nothing": "true",
}))  # fmt: skip
def test_discovery_script_that_does_not_work(cluster, tmp_path, behaviour):
    """What was known holds until it works again."""
    discovery = Discovery(tmp_path)
    job = running_job(cluster, hosts=("--host-discovery-script", discovery.script))
    discovery.behaves(behaviour)
    runs = discovery.runs()
    job.wait_for(lambda: discovery.runs() >= runs + (1 if "sleep" in behaviour else 3), 60, "runs of the script")
    job.wait_for_steps(20)
    if behaviour != "true":
        assert job.log.newest_world() == 1
    discovery.behaves("echo a:2; echo b:2")
    job.wait_for_size(4)
    assert job.finish() == 0


@pytest.mark.parametrize("times", [8] if ALL else [2])
def test_host_that_flaps(cluster, tmp_path, times):
    discovery = Discovery(tmp_path)
    job = running_job(cluster, hosts=("--host-discovery-script", discovery.script))
    for _ in range(times):
        for hosts in ("echo a:2", "echo a:2; echo b:2"):
            discovery.behaves(hosts)
            runs = discovery.runs()
            job.wait_for(lambda: discovery.runs() > runs, 30, "a run of the script")
    job.wait_for_size(4, 90)
    assert job.finish() == 0, "planned changes roll nothing back"
