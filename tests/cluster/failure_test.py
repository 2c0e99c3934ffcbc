"""A worker fails: the job ends with its exit code, one block of output says which worker failed and why, and nothing is left behind."""

import re
import time
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parent / "scripts"


@pytest.mark.parametrize(
    "how, exit_code, meaning",
    [
        ("raise", 1, "ValueError: the loss is not a number"),
        ("exit", 3, "exit code 3"),
        ("kill", 137, "killed by signal 9 (SIGKILL)"),
        ("segfault", 139, "killed by signal 11 (SIGSEGV)"),
    ],
)
@pytest.mark.parametrize("rank", [0, 3])
def test_failing_worker_ends_the_job(cluster, record_property, how, exit_code, meaning, rank):
    job = cluster["launcher"].start_command(
        ["horovodrun", "-np", "4", "-H", "a:2,b:2", "python", SCRIPTS / "fail.py", how, rank]
    )
    failed_at = float(job.stdout.wait_for(r"fails at (\S+)", 60).group(1))
    assert job.wait() == exit_code, job.everything()
    seconds = time.time() - failed_at
    record_property("seconds from failure to end", round(seconds, 2))
    print(f"{how} of rank {rank}: job over {seconds:.2f} s later")
    own_words = [line for line in job.stderr.text.splitlines() if not re.match(r"\[\d+\]<", line)]
    block = "\n".join(own_words)
    assert block.count("Cause: ") == 1, block
    assert f"Cause: rank {rank} on host {'ab'[rank // 2]} failed: " in block, block
    assert meaning in block, block
    assert f"about to {how}" in block, "the last lines of its stderr belong there\n" + block
    assert "Traceback" not in block or how == "raise"
    assert cluster.leftovers() == []


def test_failure_of_the_one_is_not_blamed_on_the_others(cluster):
    job = cluster["launcher"].start_command(
        ["horovodrun", "-np", "4", "-H", "a:2,b:2", "python", SCRIPTS / "fail.py", "kill", 2]
    )
    job.wait(60)
    assert re.findall(r"Cause: rank (\d+) on host (\w+)", job.stderr.text) == [("2", "b")], job.everything()


def test_worker_that_leaves_without_a_word_fails_the_job(cluster):
    code = "import os, horovod.numpy as hvd; hvd.init(); os._exit(0) if hvd.rank() == 1 else hvd.barrier()"
    job = cluster["launcher"].start_command(["horovodrun", "-np", "2", "-H", "a:1,b:1", "python", "-c", code])
    assert job.wait(60) != 0
    assert "rank 1 on host b exited with code 0 without having finished" in job.stderr.text, job.everything()
