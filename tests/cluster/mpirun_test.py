"""Processes of mpirun on several machines that call hvd.init(), without horovodrun."""

import json

import pytest

from netns import REPOSITORY, Cluster

SCRIPT = REPOSITORY / "tests/e2e/jobs/launched.py"
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--host", "a:2,b:2"]


@pytest.fixture
def cluster(tmp_path):
    with Cluster(["a", "b"], tmp_path) as running:
        yield running


def test_processes_on_two_machines_are_one_job(cluster, tmp_path):
    environment = [word for name in ("PATH", "PYTHONPATH", "HOROVOD_RENDEZVOUS_DIR") for word in ("-x", name)]
    command = [*MPIRUN, *environment, "python", SCRIPT]
    result = cluster["a"].run(
        command, timeout=120, env={"HOROVOD_RENDEZVOUS_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    )
    assert result.returncode == 0, result.stdout + result.stderr
    places = sorted(
        (json.loads(line) for line in result.stdout.splitlines() if line[0] == "{"), key=lambda place: place["rank"]
    )
    assert [(place["rank"], place["local_rank"], place["cross_rank"], place["total"]) for place in places] == [
        (0, 0, 0, 4.0),
        (1, 1, 0, 4.0),
        (2, 0, 1, 4.0),
        (3, 1, 1, 4.0),
    ]
    assert [place["OMPI_COMM_WORLD_RANK"] for place in places] == ["0", "1", "2", "3"]
    for name in "ab":
        assert cluster[name].find("horovod") == []
    assert list(tmp_path.glob("mpirun*")) == []


def test_machines_without_ipv4(cluster, tmp_path):
    """The variables are Open MPI's, which itself needs IPv4 here."""
    variables = {
        "OMPI_COMM_WORLD_SIZE": "2",
        "PMIX_NAMESPACE": "1",
        "HOROVOD_RENDEZVOUS_DIR": str(tmp_path),
        "OMP_NUM_THREADS": "1",
    }
    for name in "ab":
        cluster[name].use_ipv6_only()
    processes = [
        cluster[name].start_command(["python", SCRIPT], env={**variables, "OMPI_COMM_WORLD_RANK": rank})
        for rank, name in (("0", "a"), ("1", "b"))
    ]
    local = {**variables, "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": "2"}
    processes += [
        cluster["a"].start_command(["python", SCRIPT], env={**local, "OMPI_COMM_WORLD_RANK": rank}) for rank in "01"
    ]
    for rank, process in enumerate(processes):
        assert process.wait(60) == 0, process.everything()
        place = json.loads(process.stdout.text)
        assert (place["rank"], place["total"]) == (rank % 2, 2.0)
