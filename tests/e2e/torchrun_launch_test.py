"""Scripts with hvd.init() that torchrun starts, without horovodrun. Needs a torch whose torchrun works with this Python: pip's."""

import re
import sys
from pathlib import Path

import pytest

from launched_test import places_of

SCRIPT = Path(__file__).resolve().parent / "jobs" / "launched.py"
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node"]


def test_processes_of_torchrun_are_one_job(launch):
    places = places_of(launch(*TORCHRUN, 3, SCRIPT))
    assert [
        (place["rank"], place["size"], place["local_rank"], place["RANK"], place["LOCAL_RANK"]) for place in places
    ] == [(rank, 3, rank, str(rank), str(rank)) for rank in range(3)]
    assert {place["total"] for place in places} == {3.0}


@pytest.mark.parametrize("what, code", [("raise", "1"), ("exit", "7"), ("kill", "-9")])
def test_torchrun_finds_the_process_that_failed_first(launch, what, code):
    result = launch(*TORCHRUN, 2, SCRIPT, what)
    assert result.returncode == 1
    cause = result.stderr[result.stderr.index("Root Cause (first observed failure)") :]
    assert re.search(rf"rank +: 1 .*\n +exitcode +: {code} ", cause), result.stderr


def test_a_restart_of_torchrun_is_another_job(launch):
    """Its processes do not take the file that a killed rank 0 has left."""
    script = (
        "import os, horovod.numpy as hvd; first = os.environ['TORCHELASTIC_RESTART_COUNT'] == '0'\n"
        "hvd.init()\n"
        "if first and hvd.rank() == 0: os.kill(os.getpid(), 9)\n"
        "hvd.barrier(); print(f'rank {hvd.rank()} restart {os.environ[\"TORCHELASTIC_RESTART_COUNT\"]}\\n', end='', flush=True)\n"
    )
    command = [*TORCHRUN, 2, "--max_restarts", 1, "--no_python", sys.executable, "-c", script]
    result = launch(*command)
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.split("\n")[:2]) == ["rank 0 restart 1", "rank 1 restart 1"], result.stdout
