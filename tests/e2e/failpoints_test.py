"""Walks through all failpoints (base/failpoint) with crashes, delays and errors, in jobs whose hosts and daemons come and go.

What is listed by the programs must be passed, so a new point is in the walk, or fails it. With FAILPOINTS_ALL=1 each point acts in a
job of its own, with each action.
"""

import contextlib
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "faults"))

import check

from failpoint_job import FailpointJob, failpoints, free_ports
from processes import Running

ALL = bool(os.environ.get("FAILPOINTS_ALL"))
MOST_JOBS = 4
PROGRAMS = ("daemon", "agent", "worker")
# In the midst of the training, and not at the first operation of all.
LATER = {"worker.commit.": 4, "worker.arena.": 4, "worker.operation.": 6, "daemon.journal.": 6, "daemon.event.": 6}
RARE = ("worker.commit.interrupts",)


def points_of(programs, action, in_etcd=False):
    """The listed points of these programs at which there is this action."""
    listed = [(name, fails) for program in programs for name, fails in failpoints(program).items()]
    return [
        name for name, fails in listed if (fails or action != "error") and name.startswith("daemon.etcd.") == in_etcd
    ]


def item(name, action):
    later = next((f"@{at}" for prefix, at in LATER.items() if name.startswith(prefix)), "")
    return f"{name}={action}{'' if name in RARE else later}"


def live(job):
    """The life of a job: workers, an agent and the daemon are killed, hosts drain and come back. It passes every point."""
    job.train(size=3)
    world = job.newest_world()
    job.kill_worker("b")
    job.train(size=3, after=world)
    job.kill_daemon()
    job.train(size=3)

    world = job.newest_world()
    job.drain("b")
    job.train(size=1, after=world)
    # Nobody is in its world yet, so those that have started are stopped.
    job.shut("b")
    job.start_agent("b")
    job.await_(lambda: job._workers("b"), "workers that start on b")
    job.drain("b")

    # The other host takes copies, while its workers start, and the only host with commits is lost.
    step = job.last_step()
    world = job.newest_world()
    kept = job.events("commits_kept", "b")
    job.start_agent("b")
    job.await_(lambda: job.events("commits_kept", "b") > kept, "copies on b")
    lost = len(job.agents_lost)
    job.kill_agent("a")
    was_only_a = [host for _, host in job.agents_lost[lost:]] == ["a"]
    job.open("b")
    # Nobody waits then until the lost host's workers have surely ended.
    job.start_agent("a")
    job.train(size=3, after=world)
    begins = min(begun for number, members in job.worlds().items() if number > world for _, _, begun in members)
    assert begins >= step or not was_only_a, f"begins after step {begins}, and b had a copy of {step}"
    job.end()


def verify(job):
    """From the workers' own logs: no commit is lost that was somewhere, ranks are unique, and all members agree."""
    faults = [check.Fault(time, "agent killed", host) for time, host in job.agents_lost]
    entries = [entry for entry in check.read(job.logs) if entry.kind == "returned"]
    assert list(check.lost(entries, faults)) == []
    for number, members in job.worlds().items():
        ranks = [rank for rank, _, _ in members]
        sizes = {size for _, size, _ in members}
        begun = {step for _, _, step in members}
        assert len(sizes) == len(begun) == 1, f"world {number}: {members}"
        assert len(set(ranks)) == len(ranks) <= sizes.pop(), f"world {number}: {members}"


def walk(directory, points, **options):
    """One job in which these points are to act, with their actions. Returns those that nobody has passed."""
    directory.mkdir()
    job = FailpointJob(directory, ";".join(item(name, action) for name, action in points), **options)
    try:
        live(job)
        verify(job)
        passed = {mark.name for mark in job.marks.iterdir()}
        return [(name, action) for name, action in points if name not in passed]
    finally:
        job.close()


@contextlib.contextmanager
def etcd(directory):
    """A server of its own. Returns its endpoint."""
    if shutil.which("etcd") is None:
        pytest.skip("etcd is not installed")
    ports = free_ports(2)
    urls = [f"http://127.0.0.1:{port}" for port in ports]
    server = Running(
        ["etcd", "--data-dir", str(directory / "etcd"), "--log-level", "error",
         "--listen-client-urls", urls[0], "--advertise-client-urls", urls[0],
         "--listen-peer-urls", urls[1], "--initial-advertise-peer-urls", urls[1], "--initial-cluster", f"default={urls[1]}"]
    )  # fmt: skip
    try:
        yield f"127.0.0.1:{ports[0]}"
    finally:
        server.end()


GROUPS = {
    "daemon-crashes": (("daemon",), "crash"),
    "agent-crashes": (("agent",), "crash"),
    "worker-crashes": (("worker",), "crash"),
    "delays": (PROGRAMS, "delay:300ms"),
    "errors": (PROGRAMS, "error"),
}
# What a rank does after its run is judged by its exit code once the others have finished, so these jobs may fail.
FAILURES = {
    ("worker.run.agreed_to_end", "crash"): "killed by signal 9",
    ("worker.finish.untold", "crash"): "killed by signal 9",
    ("worker.finish.told", "crash"): "killed by signal 9",
    ("worker.finish.untold", "error"): "exited with code 0 without having finished",
}


@pytest.mark.parametrize("group", GROUPS)
def test_all_points_act(tmp_path, group):
    """In one job, but that a crash may keep others from being passed, e.g. when it ends the job: these act in a further one."""
    programs, action = GROUPS[group]
    walk_all(tmp_path, [(name, action) for name in points_of(programs, action) if (name, action) not in FAILURES])


@pytest.mark.parametrize("action", ["crash", "delay:300ms", "error"] if ALL else ["crash"])
def test_all_points_of_etcd_act(tmp_path, action):
    with etcd(tmp_path) as endpoint:
        walk_all(tmp_path, [(name, action) for name in points_of(("daemon",), action, in_etcd=True)], etcd=endpoint)


def walk_all(directory, left, **options):
    for number in range(MOST_JOBS):
        before, left = left, walk(directory / str(number), left, **options)
        assert left != before, f"no job passes {left}"
        if not left:
            return
    raise AssertionError(f"{MOST_JOBS} jobs did not pass {left}")


def alone():
    actions = ("crash", "delay:300ms", "error") if ALL else ()
    single = [(name, action) for action in actions for name in points_of(PROGRAMS, action)]
    return dict.fromkeys([*FAILURES, *single])


@pytest.mark.parametrize(("name", "action"), alone())
def test_a_point_acts_alone(tmp_path, name, action):
    assert walk(tmp_path / "job", [(name, action)], failure=FAILURES.get((name, action))) == []


def test_package_passes_listed_points():
    """The names in C++ are checked by the compiler."""
    sources = (Path(__file__).resolve().parents[2] / "python").rglob("*.py")
    named = {name for source in sources for name in re.findall(r'failpoint\("([^"]+)"', source.read_text())}
    assert named and named <= failpoints("worker").keys()
