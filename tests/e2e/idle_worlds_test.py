"""A job ends, rather than forming world after world, if no world makes progress (e.g. if NCCL can't be initialised)."""

import re
import sys

import pytest

JOB = """
import horovod.numpy as hvd
from horovod.common.exceptions import HorovodInternalError

hvd.init()

@hvd.elastic.run
def train(state):
    raise HorovodInternalError("NCCL: unhandled system error")

train(hvd.elastic.State(step=0))
"""


# In the first world rank 1 breaks all its connections to the other worker, once, after some steps.
LOST_CONNECTION = """
import os, socket, stat
import numpy as np
import horovod.numpy as hvd

def break_connections():
    for name in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(name))) as connection:
                if connection.family == socket.AF_INET and connection.getpeername():
                    connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # no socket, or one that listens

hvd.init()
first = hvd.rank() == 1

@hvd.elastic.run
def train(state):
    global first
    while state.step < 20:
        hvd.allreduce(np.ones(1000), name="x")
        state.step += 1
        state.commit()
        if first and state.step == 5:
            first = False
            break_connections()
    print("done", os.getpid(), hvd.size(), state.step)

train(hvd.elastic.State(step=0))
"""


def test_connections_that_break_between_living_workers_lead_to_the_next_world(horovodrun):
    result = horovodrun.run(
        "-np", "2", "--min-np", "2", sys.executable, "-c", LOST_CONNECTION, env={"HOROVOD_SHARED_MEMORY": "0"}
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert len(re.findall(r"done \d+ 2 20$", result.stdout, re.M)) == 2
    assert re.search(
        r"world 1 ended although no worker had failed: rank \d on host localhost: .*rank \d", result.stderr
    ), result.stderr
    assert "failed:" not in result.stderr.replace("had failed:", "")


# The first operations in a world, those that register the process sets, fail in all worlds after the first.
LOST_IN_PREPARATIONS = """
import horovod.numpy as hvd
from horovod.common import _process
from horovod.common.exceptions import HorovodInternalError

def lose_peer():
    hvd.allreduce(1.0, name="completed")
    raise HorovodInternalError("rank 7 is gone", code=14)  # UNAVAILABLE

hvd.init()
_process.on_later_world(lose_peer)
hvd.elastic.run(lambda state: lose_peer())(hvd.elastic.State(step=0))
"""


@pytest.mark.parametrize(
    "job",
    [JOB.replace('"NCCL: unhandled system error"', '"rank 7 is gone", code=14'), LOST_IN_PREPARATIONS],
    ids=["in training", "in the preparations of a world"],
)
def test_ranks_that_only_lose_each_other_pause_and_end_by_time_not_by_number(horovodrun, job):
    # The limit holds for the start of the workers as well, which takes some seconds on a busy machine.
    flags = ["--min-np", "1", "--max-failures-in-a-row", "1", "--elastic-timeout", "15"]
    result = horovodrun.run("-np", "2", *flags, sys.executable, "-c", job)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "as 1 world before it: rank" in result.stderr and "the next one follows after 1s" in result.stderr
    assert (
        "gave up after 15s of worlds whose ranks lost each other before an operation was completed; the last: rank"
        in result.stderr
    )


@pytest.mark.parametrize("elastic", [True, False])
def test_job_ends_and_names_the_cause(horovodrun, elastic):
    flags = ["--min-np", "1"] if elastic else []
    result = horovodrun.run("-np", "2", *flags, sys.executable, "-c", JOB)
    assert result.returncode == 1, result.stdout + result.stderr
    cause = r"rank \d on host localhost: NCCL: unhandled system error"
    if elastic:
        assert len(re.findall("workers formed", result.stderr)) == 3, result.stderr
        assert re.search(
            rf"world 2 ended before an operation was completed in it, as 1 world before it: {cause}; the next one follows after 1s",
            result.stderr,
        )
        assert re.search(
            rf"gave up after 3 worlds in a row without an operation that was completed; the last: {cause}",
            result.stderr,
        ), result.stderr
    else:
        assert re.search(
            rf"gave up: world 3 ended before an operation was completed in it, as 2 worlds before it: {cause}",
            result.stderr,
        ), result.stderr


@pytest.mark.parametrize("limits", [["--min-np", "1"], []])
def test_worlds_that_break_while_the_state_is_synchronized_make_no_progress(horovodrun, limits):
    job = """
import horovod.numpy as hvd
from horovod.common.exceptions import HorovodInternalError

hvd.init()

class State(hvd.elastic.State):
    def sync(self):
        super().sync()  # which completes operations
        raise HorovodInternalError("NCCL: unhandled system error")

hvd.elastic.run(lambda state: None)(State(step=0))
"""
    result = horovodrun.run("-np", "2", *limits, sys.executable, "-c", job)
    assert result.returncode == 1, result.stdout + result.stderr
    assert re.search(r"gave up.* operation (that )?was completed", result.stderr), result.stderr
    assert "NCCL: unhandled system error" in result.stderr


def test_limit_can_be_set(horovodrun):
    result = horovodrun.run("-np", "1", "--min-np", "1", "--max-failures-in-a-row", "1", sys.executable, "-c", JOB)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "gave up after 1 world in a row" in result.stderr
    result = horovodrun.run("-np", "1", "--max-failures-in-a-row", "1", sys.executable, "-c", JOB)
    assert result.returncode == 2 and "is for elastic jobs" in result.stderr
