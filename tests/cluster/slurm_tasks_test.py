"""Tasks of srun that call hvd.init(), without horovodrun, on a real Slurm whose nodes are test hosts."""

import json
import re
import tempfile
from pathlib import Path

import pytest

from netns import REPOSITORY, Cluster
from processes import wait_until_none
from slurm import Slurm

SCRIPT = REPOSITORY / "tests/e2e/jobs/launched.py"
TORCH_SCRIPT = REPOSITORY / "tests/torch_distributed/scripts/env_launched.py"
VARIABLE = "HOROVOD_RENDEZVOUS_DIR"


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("slurm")


@pytest.fixture(scope="module")
def cluster(directory):
    """Two nodes, and a host from which jobs are submitted."""
    with Cluster(["a", "b", "login"], directory) as running:
        yield running


@pytest.fixture(scope="module")
def slurm(cluster, directory):
    return Slurm(cluster["login"], [cluster["a"], cluster["b"]], directory / "slurm")


@pytest.fixture
def work(directory):
    """A directory that all the hosts have, and the home of the tests' user."""
    return Path(tempfile.mkdtemp(dir=directory))


def run(slurm, work, *options, what="", environment=None, script=SCRIPT):
    command = ["srun", *options, "python", script, *([what] if what else [])]
    return slurm.run(command, work, timeout=120, env={"HOME": str(work), "OMP_NUM_THREADS": "1", **(environment or {})})


def places_of(result):
    found = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    return sorted(found, key=lambda place: place["rank"])


def said_by_tasks(result):
    """What the tasks have written to stderr: srun itself may have waited for its nodes, and says so."""
    return re.sub(
        r"^srun: (Required node not available|job \d+ (queued|has been allocated)).*\n", "", result.stderr, flags=re.M
    )


def check_nothing_is_left(slurm, cluster, work):
    slurm.wait_until_idle(60)
    assert wait_until_none(lambda: cluster["a"].find("horovod") + cluster["b"].find("horovod")) == []
    assert not (work / ".horovod").exists() or list((work / ".horovod").iterdir()) == []


def test_tasks_on_two_nodes_are_one_job(slurm, cluster, work):
    result = run(slurm, work, "-N2", "--ntasks-per-node=2")
    assert result.returncode == 0 and said_by_tasks(result) == "", result.stdout + result.stderr
    places = places_of(result)
    assert [place["rank"] for place in places] == [0, 1, 2, 3]
    assert [int(place["SLURM_PROCID"]) for place in places] == [0, 1, 2, 3]
    assert [place["SLURMD_NODENAME"] for place in places] == ["a", "a", "b", "b"]
    assert [
        (place["local_rank"], place["local_size"], place["cross_rank"], place["cross_size"]) for place in places
    ] == [
        (0, 2, 0, 2),
        (1, 2, 0, 2),
        (0, 2, 1, 2),
        (1, 2, 1, 2),
    ]
    assert {(place["size"], place["total"]) for place in places} == {(4, 4.0)}
    check_nothing_is_left(slurm, cluster, work)


def test_tasks_have_a_group_of_torch_without_an_address(slurm, cluster, work):
    result = run(slurm, work, "-N2", "--ntasks-per-node=2", script=TORCH_SCRIPT)
    assert result.returncode == 0 and said_by_tasks(result) == "", result.stdout + result.stderr
    assert sorted(result.stdout.splitlines()) == [f"rank {rank} of 4 is done" for rank in range(4)]
    check_nothing_is_left(slurm, cluster, work)


def test_tasks_of_one_node_need_no_shared_directory(slurm, cluster, work):
    result = run(slurm, work, "-N1", "-n2", environment={"HOME": "/nowhere"})
    assert result.returncode == 0, result.stdout + result.stderr
    assert [place["local_size"] for place in places_of(result)] == [2, 2]
    check_nothing_is_left(slurm, cluster, work)


def test_steps_of_a_job_are_jobs_of_their_own(slurm, cluster, work):
    (work / "steps.sbatch").write_text(
        f"#!/bin/sh\nexport HOME={work}\nfor step in 1 2; do srun --overlap -N2 -n2 python {SCRIPT} & done; wait\n"
    )
    job = slurm.submit(["-N2", "-n4", "steps.sbatch"], work)
    assert job.wait(120) == "COMPLETED 0:0", job.output.text
    places = [
        json.loads(line) for line in (work / f"slurm-{job.number}.out").read_text().splitlines() if line[0] == "{"
    ]
    assert sorted((place["rank"], place["size"]) for place in places) == [(0, 2), (0, 2), (1, 2), (1, 2)]
    check_nothing_is_left(slurm, cluster, work)


@pytest.mark.parametrize("what, code", [("raise", 1), ("exit", 7), ("kill", 137)])
def test_a_task_that_fails_ends_the_others(slurm, cluster, work, what, code):
    result = run(slurm, work, "-N2", "-n2", what=what)
    assert result.returncode == code, result.stdout + result.stderr
    assert re.search(r"HorovodInternalError: .*rank 1", result.stderr), result.stderr
    check_nothing_is_left(slurm, cluster, work)


def test_ranks_may_go_to_and_fro_between_nodes(slurm, cluster, work):
    result = run(slurm, work, "-N2", "--ntasks-per-node=2", "--distribution=cyclic", what="order")
    assert result.returncode == 0 and said_by_tasks(result) == "", result.stdout + result.stderr
    places = places_of(result)
    assert [(int(place["SLURM_PROCID"]), place["SLURMD_NODENAME"]) for place in places] == list(enumerate("abab"))
    names = ("rank", "local_rank", "local_size", "cross_rank", "cross_size")
    assert [tuple(place[name] for name in names) for place in places] == [
        (0, 0, 2, 0, 2),
        (1, 0, 2, 1, 2),
        (2, 1, 2, 0, 2),
        (3, 1, 2, 1, 2),
    ]
    check_nothing_is_left(slurm, cluster, work)


def test_tasks_of_all_components_of_a_heterogeneous_job_are_one_job(slurm, cluster, work):
    step = ["srun", "--het-group=0-1", "python", str(SCRIPT)]
    command = ["salloc", "-N1", "-n1", ":", "-N1", "-n2"]
    result = slurm.run([*command, *step], work, timeout=120, env={"HOME": str(work), "OMP_NUM_THREADS": "1"})
    assert result.returncode == 0, result.stderr
    assert [(place["rank"], place["size"], place["SLURMD_NODENAME"]) for place in places_of(result)] == [
        (0, 3, "a"),
        (1, 3, "b"),
        (2, 3, "b"),
    ]
    refused = slurm.run([*command, "horovodrun", "touch", "started"], work, timeout=60)
    assert refused.returncode == 2 and not (work / "started").exists()
    assert "horovodrun: error: this job of Slurm is heterogeneous: which of its 2 components" in refused.stderr
    check_nothing_is_left(slurm, cluster, work)


def test_directories_that_the_nodes_do_not_share_are_reported(slurm, cluster, work):
    own = work / "own"
    own.mkdir()
    cluster["b"].hide(own)
    result = run(slurm, work, "-N2", "-n2", environment={VARIABLE: str(own), "HOROVOD_START_TIMEOUT": "5"})
    assert result.returncode == 1
    assert re.search(
        rf"process 1 of srun: after 5 s {own}/srun-\S+ is not there \(rank 0, on \S+, writes it in hvd.init\(\); all machines must "
        rf"see it: set {VARIABLE} to a directory that they share; a process",
        result.stderr,
    ), result.stderr
    assert "gave up after" in result.stderr
    check_nothing_is_left(slurm, cluster, work)
