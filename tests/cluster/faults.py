"""Common code of the fault tests. ELASTIC_TEST_ALL_FAULTS=1 runs all of them."""

import contextlib
import os
import signal
from pathlib import Path

import pytest

from elastic_job import FaultyJob, workers_on
from processes import GUARD

ALL = os.environ.get("ELASTIC_TEST_ALL_FAULTS", "") not in ("", "0")
SLACK = GUARD  # what a busy machine may take beyond a documented deadline
SILENCE = 4  # until a host that does not answer counts as lost
STOPPED = 10  # ... and who is stopped for dead


def chosen(cases):
    """Test cases by name: those that are always tried, whose names begin with "+", or all of them."""
    return [pytest.param(case, id=name.strip("+")) for name, case in cases.items() if ALL or name.startswith("+")]


def say(job, what=""):
    recovered, longest = job.seconds_to_recover()
    print(f"{what}first step of a later world after {recovered} s, longest time without a step {longest} s")


def running_job(cluster, **options):
    """Of 4 workers, a few steps after its start."""
    job = FaultyJob(cluster, **options)
    job.wait_for_size(4)
    job.wait_for_steps(3)
    return job


def kill(pids, number=signal.SIGKILL):
    """Each of them, unless it has ended with one that was killed before it."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def all_workers(cluster):
    return {pid for name in ("a", "b") for pid in workers_on(cluster[name])}


def pid_of(cluster, entry):
    """Outside of its host, of the process that has logged this."""
    for pid in workers_on(cluster[entry["host"]]):
        status = Path(f"/proc/{pid}/status").read_text()
        inside = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[-1]
        if int(inside) == entry["pid"]:
            return pid
    raise AssertionError(f"there is no process {entry}")
