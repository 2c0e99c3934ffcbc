"""Scripts written for torchrun under horovodrun: they find the variables that torchrun sets. Their workers load none of Horovod's libraries, so what
happens at the end of the interpreter is torch's (jobs/torchrun_script.py)."""

import json
import os
import sys
from pathlib import Path

import pytest
import torch

JOBS = Path(__file__).resolve().parent / "jobs"
ALONE = {"OMP_NUM_THREADS": "1"}


def entries_of(result):
    assert result.returncode == 0, result.stdout + result.stderr
    found = [json.loads(line.split(">:", 1)[1]) for line in result.stdout.splitlines() if "{" in line]
    return sorted(found, key=lambda entry: entry["rank"])


def test_a_script_for_torchrun_trains_unchanged(horovodrun):
    entries = entries_of(
        horovodrun.run("-np", 3, "-H", "localhost:3", sys.executable, JOBS / "torchrun_script.py", env=ALONE)
    )
    assert [(entry["rank"], entry["world"], entry["local_rank"]) for entry in entries] == [
        (rank, 3, rank) for rank in range(3)
    ]
    for entry in entries:
        assert entry["weights"] == entries[0]["weights"]
        assert (entry["LOCAL_WORLD_SIZE"], entry["GROUP_RANK"], entry["GROUP_WORLD_SIZE"]) == ("3", "0", "1")
        assert (entry["ROLE_RANK"], entry["ROLE_WORLD_SIZE"]) == (str(entry["rank"]), "3")


def test_what_another_torchrun_set_is_not_passed_on(horovodrun):
    """The launcher runs in a worker of torchrun's: its group is not this job's."""
    outer = {"RANK": "7", "LOCAL_RANK": "7", "WORLD_SIZE": "8", "MASTER_ADDR": "192.0.2.1", "MASTER_PORT": "1"}
    outer["TORCHELASTIC_USE_AGENT_STORE"] = "True"
    result = horovodrun.run("-np", 2, sys.executable, JOBS / "torchrun_script.py", env={**ALONE, **outer})
    assert [entry["rank"] for entry in entries_of(result)] == [0, 1]


def test_the_users_own_store_stays(horovodrun):
    result = horovodrun.run("-np", 1, "printenv", "MASTER_ADDR", "MASTER_PORT", env={"MASTER_PORT": "29512"})
    assert [line.split(">:")[1] for line in result.stdout.splitlines()] == ["127.0.0.1", "29512"]


def test_workers_know_that_a_launcher_started_them(horovodrun):
    """Lightning asks so before it looks for a scheduler's variables, which are the same in all workers."""
    code = "import os, torch.distributed as dist; print(dist.is_torchelastic_launched(), os.environ['TORCHELASTIC_RUN_ID'])"
    result = horovodrun.run("-np", 2, sys.executable, "-c", code, env=ALONE)
    assert result.returncode == 0, result.stdout + result.stderr
    said = {line.split(">:")[1] for line in result.stdout.splitlines()}
    assert len(said) == 1 and said.pop().startswith("True "), result.stdout


@pytest.mark.skipif(int(torch.__version__.split(".")[0]) < 2, reason="DTensor and fully_shard come with torch 2")
def test_fsdp_dtensor_and_distributed_checkpoints(horovodrun, tmp_path):
    result = horovodrun.run(
        "-np", 2, sys.executable, JOBS / "torch_shards.py", tmp_path / "checkpoint", env=ALONE, timeout=120
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert sorted(line.split(">:")[1] for line in result.stdout.splitlines()) == ["sharded 0", "sharded 1"]


def test_a_group_for_each_world_of_an_elastic_job(horovodrun):
    result = horovodrun.run(
        *("-np", 3, "--min-np", 2, "-H", "localhost:3", sys.executable, JOBS / "torch_beside_hvd.py"),
        env=ALONE,
        timeout=120,
    )
    entries = entries_of(result)
    sizes = {}
    for entry in entries:
        assert entry["total"] == sum(range(entry["size"]))
        assert (entry["group"], entry["groups"]) == ("0", "1")
        sizes.setdefault(entry["size"], []).append(entry["rank"])
    # Two worlds of three ranks, with or without one of two between them.
    assert sizes[3] == [0, 0, 1, 1, 2, 2]
    assert horovodrun.processes_left() == []


def test_an_elastic_job_does_not_set_them_for_good(horovodrun):
    assert "RANK" not in os.environ
    result = horovodrun.run("-np", 1, "--min-np", 1, "sh", "-c", "echo ${RANK-none} ${MASTER_ADDR-none}")
    assert [line.split(">:")[1] for line in result.stdout.splitlines()] == ["none none"]
