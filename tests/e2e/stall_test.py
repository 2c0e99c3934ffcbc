"""A rank that keeps the others waiting: it is reported once, with its current call, and the job ends it at last."""

import json
import re
import sys
from pathlib import Path

import pytest

JOB = Path(__file__).resolve().parent / "jobs" / "stalls.py"
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


def place(how):
    """Where the job holds the others up, as stacks name it: a line, or the head of its loop above."""
    lines = JOB.read_text().splitlines()
    number = next(i for i, line in enumerate(lines, 1) if line.endswith(f"# HERE: {how}"))
    return rf"stalls\.py:({number - 1}|{number}) in {how}"


def about_stalls(stderr):
    return [line for line in stderr.splitlines() if "talled" in line]


def test_a_rank_that_sleeps_is_reported_in_one_line(horovodrun, tmp_path):
    flags = ["--stall-check-warning-time-seconds", "2", "--event-log", "events"]
    job = horovodrun.start("-np", "2", *flags, sys.executable, JOB, "sleep", env=ONE_THREAD)
    job.stderr.wait_for("^horovodrun: Stalled")
    (tmp_path / "end").touch()
    assert job.wait() == 0, job.everything()
    lines = about_stalls(job.stderr.text)
    assert len(lines) == 1, job.stderr.text
    expected = rf"horovodrun: Stalled for \ds in allreduce 'second', waiting for rank 1 on host localhost, which is at {place('sleep')}"
    assert re.fullmatch(expected, lines[0]), lines
    events = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    stacks = [event["text"] for event in events if event["kind"] == "stack"]
    assert len(stacks) == 1 and re.search(
        place("sleep") + r" < .*stalls\.py:\d+ in hold_up < .*stalls\.py:\d+ in <module>", stacks[0]
    ), events
    assert [event["kind"] for event in events].count("stalled") == 1


@pytest.mark.parametrize("how", ["spin", "native"])
def test_a_static_job_fails_for_it(horovodrun, how):
    limits = ["--stall-check-warning-time-seconds", "2", "--stall-check-shutdown-time-seconds", "5"]
    result = horovodrun.run("-np", "2", *limits, sys.executable, JOB, how, env=ONE_THREAD)
    assert result.returncode == 1, result.stderr
    assert "Process name: 1" in result.stderr
    assert re.search(
        rf"Cause: Stalled for \ds in allreduce 'second', waiting for rank 1 on host localhost, which is at {place(how)}",
        result.stderr,
    )
    assert "done" not in result.stdout
    assert horovodrun.processes_left() == []


@pytest.mark.parametrize("how", ["spin", "native"])
def test_an_elastic_job_continues_without_it(horovodrun, how):
    limits = ["--stall-check-warning-time-seconds", "2", "--stall-check-shutdown-time-seconds", "5"]
    elastic = ["-np", "2", "--min-np", "2", "-H", "localhost:2"]
    result = horovodrun.run(*elastic, *limits, sys.executable, JOB, how, "elastic", env=ONE_THREAD)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout.splitlines()[-1].split(">:", 1)[1]) == {"steps": 4, "world": 2, "size": 2}
    assert re.search(
        rf"rank 1 on host localhost failed: stalled: the others waited for \ds for it in allreduce 'step'; it is at {place(how)}",
        result.stderr,
    )
    assert horovodrun.processes_left() == []
