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


def test_limit_can_be_set(horovodrun):
    result = horovodrun.run("-np", "1", "--min-np", "1", "--max-failures-in-a-row", "1", sys.executable, "-c", JOB)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "gave up after 1 world in a row" in result.stderr
    result = horovodrun.run("-np", "1", "--max-failures-in-a-row", "1", sys.executable, "-c", JOB)
    assert result.returncode == 2 and "is for elastic jobs" in result.stderr
