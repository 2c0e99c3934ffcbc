"""Silent data corruption: a flipped bit is found by the next commit, and the rank is named."""

import json
import re
import sys
from pathlib import Path

import pytest

JOB = Path(__file__).resolve().parent / "jobs" / "corrupted.py"
# What differs in a line about rank 2, by what is flipped.
FOUND = {
    "parameter": r"parameters \(model\.2\.weight\)",
    "optimizer": r"optimizer state \(optimizer\['state'\]\[0\]\['exp_avg_sq'\]\)",
    "allreduce": r"parameters and optimizer state \(3 tensors, first model\.0\.weight\)",
}


def start(horovodrun, folder, what, rank=2, ranks=3, policy="", steps=9, more=()):
    """A job whose rank `rank` is changed at step 5, before commit 6."""
    flags = ["-np", ranks, "--min-np", ranks]
    flags += ["--on-corruption", policy] if policy else []
    command = [sys.executable, JOB, folder, what, rank, steps, *more]
    return horovodrun.run(*flags, *command, env={"OMP_NUM_THREADS": "1"}, timeout=120)


def said(job, key):
    return [line for line in map(json.loads, re.findall(r"\{.*\}", job.stdout)) if key in line]


def alarms(job):
    return [line for line in job.stderr.splitlines() if re.search("(Horovod|Cause): silent data corruption", line)]


@pytest.mark.parametrize("what", FOUND)
def test_flipped_bit_is_found_by_the_next_commit_and_the_rank_is_named(horovodrun, tmp_path, what):
    job = start(horovodrun, tmp_path, what)
    assert job.returncode == 0, job.stdout + job.stderr
    line = rf"silent data corruption at commit 6: rank 2 on host \S+ differs from the other ranks in {FOUND[what]}; its commits"
    assert len(alarms(job)) == 1 and re.search(line, alarms(job)[0]), job.stderr
    assert [line["same"] for line in said(job, "done")] == [False] * 3


@pytest.mark.parametrize("what", FOUND)
def test_rank_that_is_evicted_is_replaced_and_the_others_go_back_by_a_commit(horovodrun, tmp_path, what):
    job = start(horovodrun, tmp_path, what, policy="evict")
    assert job.returncode == 0, job.stdout + job.stderr
    assert re.search("commit 6: rank 2 on host .*; the others go on from commit 5", job.stderr), job.stderr
    begins = [line["begins"] for line in said(job, "begins")]
    assert begins == [0, 0, 0, 5, 5, 5], job.stdout
    assert [line["same"] for line in said(job, "done")] == [True] * 3


def test_rank_0_that_is_evicted_is_no_source_of_the_state(horovodrun, tmp_path):
    job = start(horovodrun, tmp_path, "parameter", rank=0, policy="evict")
    assert job.returncode == 0, job.stdout + job.stderr
    assert re.search("commit 6: rank 0 on host .*; the others go on from commit 5", job.stderr), job.stderr
    assert [line["same"] for line in said(job, "done")] == [True] * 3


@pytest.mark.parametrize("rank, killed", [(1, 0), (2, 0)])
def test_outlier_that_stays_is_no_source_of_the_state(horovodrun, tmp_path, rank, killed):
    job = start(horovodrun, tmp_path, "parameter", rank=rank, more=[killed])
    assert job.returncode == 0, job.stdout + job.stderr
    assert [line["same"] for line in said(job, "done")] == [True] * 3
    second = {line["rank"]: line for line in said(job, "begins") if line["begins"] > 0}
    assert len(second) == 3 and {line["begins"] for line in second.values()} == {7}, job.stdout
    assert not second[0]["flipped"], "it leads the next world"


def test_two_ranks_that_differ_both_go_back(horovodrun, tmp_path):
    job = start(horovodrun, tmp_path, "parameter", rank=1, ranks=2, policy="evict")
    assert job.returncode == 0, job.stdout + job.stderr
    line = r"commit 6: rank 0 and rank 1 differ from each other in parameters \(model\.2\.weight\), and no majority says which is right"
    assert re.search(f"{line}; all ranks go back to commit 5", job.stderr), job.stderr
    assert [line["begins"] for line in said(job, "begins")] == [0, 0, 5, 5]
    assert [line["same"] for line in said(job, "done")] == [True] * 2


def test_ranks_that_differ_again_after_other_commits_are_the_scripts_doing(horovodrun, tmp_path):
    job = start(horovodrun, tmp_path, "script", rank=1, ranks=2, policy="evict", steps=4)
    assert job.returncode == 0, job.stdout + job.stderr
    assert [line["begins"] for line in said(job, "begins")] == [0, 0, 1, 1], job.stderr
    first, second = alarms(job)
    assert first.endswith("all ranks go back to commit 5")
    assert second.endswith("again: so it is the script's doing, and not compared any more")


def test_rank_0_goes_back_with_all_others_as_it_reports_commits_for_all(horovodrun, tmp_path):
    job = start(horovodrun, tmp_path, "parameter", rank=0)
    assert job.returncode == 0, job.stdout + job.stderr
    (line,) = alarms(job)
    assert "rank 0 on host" in line and line.endswith("; all ranks go back to commit 5")
    assert [line["begins"] for line in said(job, "begins")] == [0, 0, 0, 5, 5, 5]
    assert [line["same"] for line in said(job, "done")] == [True] * 3


@pytest.mark.parametrize("ranks", [2, 3])
def test_job_ends_if_it_shall(horovodrun, tmp_path, ranks):
    job = start(horovodrun, tmp_path, "optimizer", rank=1, ranks=ranks, policy="end")
    assert job.returncode == 1, job.stdout + job.stderr
    assert re.search(r"Cause: silent data corruption at commit 6: rank .*; the job ends$", job.stderr, re.M), job.stderr
    assert len(alarms(job)) == 1, "the cause"
    assert "Traceback" not in job.stderr and not said(job, "done")
    assert [line["begins"] for line in said(job, "begins")] == [0] * ranks


@pytest.mark.parametrize("what, policy", [("none", "end"), ("local", "end"), ("parameter", "off")])
def test_no_alarm(horovodrun, tmp_path, what, policy):
    job = start(horovodrun, tmp_path, what, policy=policy, steps=30)
    assert job.returncode == 0, job.stdout + job.stderr
    assert not alarms(job) and len(said(job, "done")) == 3


def test_policy_that_there_is_not(horovodrun, tmp_path):
    job = start(horovodrun, tmp_path, "none", policy="kill")
    assert job.returncode == 2 and "warn, evict, end or off" in job.stderr
