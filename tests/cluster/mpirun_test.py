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
