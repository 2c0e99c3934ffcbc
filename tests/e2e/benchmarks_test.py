"""tools/bench with its smallest arguments: the jobs take turns, and tables are printed. Checks no speed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent.parent
BENCH = REPOSITORY / "tools" / "bench"
STAGE = next((path for path in os.environ.get("PYTHONPATH", "").split(":") if path), str(REPOSITORY / ".dev" / "stage"))
sys.path.insert(0, str(BENCH))

from referee import JobFailed, Referee  # noqa: E402


@pytest.fixture
def bench(tmp_path):
    """Runs a script of tools/bench for one short round; returns what it printed, and its rows."""
    subprocess.run(
        ["cc", "-O2", "-pthread", "-o", tmp_path / "cache_line", BENCH / "native" / "cache_line.c"], check=True
    )

    def run(script, *arguments):
        rows = tmp_path / "rows"
        given = [
            "--stage",
            STAGE,
            "--programs",
            tmp_path,
            "--torch",
            "debian",
            "--rounds",
            "1",
            "--budget",
            "0.01",
            "--json",
            rows,
        ]
        done = subprocess.run(
            [sys.executable, BENCH / script, *arguments, *given], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout, [json.loads(line) for line in rows.read_text().splitlines()]

    return run


def test_collectives_of_two_libraries_are_compared(bench):
    printed, rows = bench("collectives.py", "allreduce", "--sizes", "4B", "64KB")
    assert "without c++" in printed  # was not built here: the others take part all the same
    assert [row["size"] for row in rows] == ["4B", "64KB"]
    for row in rows:
        assert row["hvd"] > 0 and row["torch 1.13"] > 0 and row["1.13/hvd"] > 0


def test_encryption_is_compared_with_none(bench):
    _, rows = bench("encryption.py", "--sizes", "64KB")
    assert len(rows) == 2
    for row in rows:
        assert row["plain"] > 0 and row["tls"] > 0 and row["tls/plain"] > 0


def test_steps_are_compared(bench):
    _, (row,) = bench("training.py", "--models", "digits", "--np", "2")
    assert row["model"] == "digits torch 1.13"
    assert row["local"] > 0 and row["hvd"] > 0 and row["ddp"] > 0


def test_a_job_that_fails_is_reported_with_its_last_words():
    with Referee() as referee, pytest.raises(JobFailed, match=r"(?s)bad: ended early.*it will not"):
        referee.start("bad", ["sh", "-c", "echo it will not; exit 3"], 1)


def test_a_rank_that_goes_is_reported():
    client = "import sys; sys.path.insert(0, {0!r}); import bench_client; bench_client.serve({1!r}, 'x', 0, lambda *_: sys.exit('gone'))"
    with Referee() as referee:
        referee.start("x", [sys.executable, "-c", client.format(str(BENCH), referee.socket_path)], 1)
        with pytest.raises(JobFailed, match=r"(?s)rank 0 has gone.*gone"):
            referee.time("x", "allreduce float32 4", 1)


def test_threads_are_compared(tmp_path):
    done = subprocess.run(
        [sys.executable, BENCH / "threads.py", "--np", "2", "--rounds", "1", "--steps", "3"], capture_output=True, text=True, timeout=120
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    ranks, *cells = done.stdout.splitlines()[-1].split()
    assert ranks == "2" and float(cells[-2]) > 0 and float(cells[-1]) > 0, done.stdout


def test_flipped_bits_are_counted():
    arguments = ["--flips", "2", "--clean", "5", "--rounds", "2", "--megabytes", "1", "--tensors", "4"]
    command = [sys.executable, BENCH / "corruption.py", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line.partition(">:")[2]) for line in done.stdout.splitlines()]
    assert [row["section"] for row in rows] == ["flips"] * 3 + ["clean", "cost"]
    assert all(row["changed_the_state"] == row["found"] == 2 and row["false"] == 0 for row in rows[:3])
    assert rows[3]["alarms"] == 0
