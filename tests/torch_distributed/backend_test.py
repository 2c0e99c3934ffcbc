"""The backend hvd of torch.distributed: numbers, mistakes and deaths. The ranks are processes without Horovod's launcher."""

import os
import re
from pathlib import Path

import pytest

from ranks import run

KILLED = -14  # SIGALRM
OPERATIONS = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast",
    "gather",
    "large_messages",
    "reduce_scatter",
    "scatter",
    "small_messages",
]
KILLS = int(os.environ.get("KILLS", "2"))  # of each operation and connection

# What a mistake of rank 1 is called on rank 0 and rank 1.
MISTAKES = {
    "operation": (r"(?s)rank 0.*rank 1|rank 1.*rank 0", r"(?s)rank 0.*rank 1|rank 1.*rank 0"),
    "size": (r"rank 1.*\[4\]", r"rank 0.*\[3\]"),
    "type": (r"rank 1.*float64", r"rank 0.*float32"),
    "reduction": (r"rank 1.*max", r"rank 0.*sum"),
    "root": (r"rank 1", r"rank 0"),
    "absent": (r"timeout of 2s is over.*waiting for rank 1", None),
    "monitored": (r"rank 1 failed to pass", None),
    "dies": (r"rank 1 is gone", None),
    "dies_before_message": (r"rank 1 is gone", None),
    "leaves": (r"rank 1", r"left"),
    "message_size": (r"rank 1 sends 16 bytes.*receives 12", r"no error|16 bytes"),
    "message_type": (r"rank 1", r"no error|type"),
    "absent_message": (r"timeout of 2 s is over.*rank 1 has sent no message", None),
    "left_before_message": (r"rank 1", None),
}


@pytest.fixture(params=["shared memory", "TCP"])
def connection(request: pytest.FixtureRequest) -> dict[str, str]:
    return {} if request.param == "shared memory" else {"HOROVOD_SHARED_MEMORY": "0"}


@pytest.mark.parametrize("ranks", [2, 3])
def test_operations(tmp_path: Path, connection: dict[str, str], ranks: int) -> None:
    ended = run(tmp_path, "operations.py", ranks, variables=connection)
    assert [(rank.code, "all right" in rank.output) for rank in ended] == [(0, True)] * ranks, ended


@pytest.mark.parametrize("case", MISTAKES)
def test_mistake_is_named(tmp_path: Path, connection: dict[str, str], case: str) -> None:
    ended = run(tmp_path, "errors.py", 2, case, variables=connection)
    for rank, wanted in enumerate(MISTAKES[case]):
        if wanted is not None:
            said = re.search(rf"(?m)^rank {rank}: (.*(\n.*)*)", ended[rank].output)
            assert said and re.search(wanted, said[1], re.IGNORECASE), ended[rank]
    if case in ("size", "type", "reduction", "root"):
        assert all("goes on" in rank.output for rank in ended), ended


def test_different_meanings_are_named_on_all_ranks(tmp_path: Path) -> None:
    ended = run(tmp_path, "meanings.py", 3)
    assert [(rank.code, "all right" in rank.output) for rank in ended] == [(0, True)] * 3, ended


def test_the_profiler_sees_the_operations(tmp_path: Path) -> None:
    ended = run(tmp_path, "profiled.py", 2)
    assert [(rank.code, "all right" in rank.output) for rank in ended] == [(0, True)] * 2, ended


@pytest.mark.parametrize("case", ["signals", "threads", "late_future"])
def test_works_that_are_waited_for_again(tmp_path: Path, case: str) -> None:
    ended = run(tmp_path, "waits.py", 2, case)
    assert [(rank.code, "all right" in rank.output) for rank in ended] == [(0, True)] * 2, ended


@pytest.mark.parametrize("operation", OPERATIONS)
def test_kills(tmp_path: Path, connection: dict[str, str], operation: str) -> None:
    for seed in range(KILLS):
        ended = run(tmp_path, "kills.py", 3, operation, str(seed), variables=connection)
        assert ended[1].code == KILLED, ended
        for rank in (0, 2):
            assert ended[rank].code == 0, ended[rank]
            assert re.search(rf"rank {rank}: .*rank 1", ended[rank].output), ended[rank]
