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


def run(cluster, tmp_path, *words):
    """What the processes print, in the order of ranks."""
    environment = [word for name in ("PATH", "PYTHONPATH", "HOROVOD_RENDEZVOUS_DIR") for word in ("-x", name)]
    command = [words[0], *environment, *words[1:]]
    result = cluster["a"].run(
        command, timeout=120, env={"HOROVOD_RENDEZVOUS_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    )
    assert result.returncode == 0, result.stdout + result.stderr
    for name in "ab":
        assert cluster[name].find("horovod") == []
    assert list(tmp_path.glob("mpirun*")) == []
    return sorted(
        (json.loads(line) for line in result.stdout.splitlines() if line[0] == "{"), key=lambda place: place["rank"]
    )


def test_processes_on_two_machines_are_one_job(cluster, tmp_path):
    places = run(cluster, tmp_path, *MPIRUN, "python", SCRIPT)
    assert [(place["rank"], place["local_rank"], place["cross_rank"], place["total"]) for place in places] == [
        (0, 0, 0, 4.0),
        (1, 1, 0, 4.0),
        (2, 0, 1, 4.0),
        (3, 1, 1, 4.0),
    ]
    assert [place["OMPI_COMM_WORLD_RANK"] for place in places] == ["0", "1", "2", "3"]


def test_processes_of_mpich_on_two_machines_are_one_job(cluster, tmp_path):
    """MPICH starts the processes on the two machines in turn."""
    result = cluster["a"].run(
        ["mpiexec.hydra", "-launcher", "ssh", "-hosts", "a,b", "-ppn", "1", "-np", "4", "python", SCRIPT],
        timeout=120,
        env={"HOROVOD_RENDEZVOUS_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    places = [json.loads(line) for line in result.stdout.splitlines() if line[0] == "{"]
    assert sorted((place["rank"], place["local_rank"], place["cross_rank"], place["total"]) for place in places) == [
        (0, 0, 0, 4.0),
        (1, 0, 1, 4.0),
        (2, 1, 0, 4.0),
        (3, 1, 1, 4.0),
    ]
    assert list(tmp_path.glob("mpirun*")) == []


def test_neighbours_may_be_on_different_machines(cluster, tmp_path):
    """With more processes on one than on the other."""
    hosts = ["--host", "a:3,b:2", "--map-by", "node", "-np", "5"]
    places = run(cluster, tmp_path, *MPIRUN[:3], *hosts, "python", SCRIPT, "order")
    assert [place["OMPI_COMM_WORLD_RANK"] for place in places] == ["0", "1", "2", "3", "4"]
    names = ("rank", "local_rank", "local_size", "cross_rank", "cross_size")
    assert [tuple(place[name] for name in names) for place in places] == [
        (0, 0, 3, 0, 2),
        (1, 0, 2, 1, 2),
        (2, 1, 3, 0, 2),
        (3, 1, 2, 1, 2),
        (4, 2, 3, 0, 1),
    ]


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
