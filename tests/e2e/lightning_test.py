"""PyTorch Lightning, 1.9 with the Horovod strategy that it brings and 2.x with ours: two ranks train as one process on the joined batches.

Runs beside pip's torch, with what tools/setup --lightning installs. Everything is trained by few processes, since Lightning takes seconds to import.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent.parent
TRAIN = Path(__file__).resolve().parent / "jobs/lightning_train.py"
BOTH = ["plain", "clipped", "manual", "resumed"]
SCENARIOS = {1: BOTH, 2: [*BOTH, "accumulated", "searched", "evaluated", "normalized", "mixed", "scaled"]}
CLOSE = {"rel": 1e-5, "abs": 1e-6}


def environment(version):
    layer = Path(os.environ.get("DEV", REPOSITORY / ".dev")) / f"lightning-{version}"
    assert layer.is_dir(), "tools/setup --lightning makes it"
    return {**os.environ, "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{layer}", "PYTHONWARNINGS": "ignore"}


def results(directory, rank):
    return json.loads((directory / f"{rank}.json").read_text())


class Trained:
    """What a job of two ranks made of the scenarios, and what one process did."""

    def __init__(self, version, directory):
        python = [sys.executable, TRAIN]
        job = [
            "horovodrun",
            "-np",
            "2",
            *python,
            directory / "job",
            *SCENARIOS[version],
            *(["asked"] if version == 2 else []),
        ]
        for command in (job, [*python, directory / "alone", *SCENARIOS[version]]):
            done = subprocess.run(command, env=environment(version), capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stdout + done.stderr
        self.ranks = [results(directory / "job", rank) for rank in (0, 1)]
        self.alone = results(directory / "alone", 0)


@pytest.fixture(scope="module")
def trained_1(tmp_path_factory):
    return Trained(1, tmp_path_factory.mktemp("lightning-1"))


@pytest.fixture(scope="module")
def trained_2(tmp_path_factory):
    return Trained(2, tmp_path_factory.mktemp("lightning-2"))


@pytest.fixture(params=[1, 2])
def trained(request):
    return request.getfixturevalue(f"trained_{request.param}")


def check_same_training(trained, scenario, *more, **tolerance):
    """Curves and weights are those of one process on the joined batches, and the same on both ranks."""
    alone, (first, second) = trained.alone[scenario], [rank[scenario] for rank in trained.ranks]
    for name in ("curve", "weights", *more):
        assert first[name] == second[name]
        assert first[name] == pytest.approx(alone[name], **{**CLOSE, **tolerance})
    assert alone["curve"][-1] < alone["curve"][0]


def test_loss_curve_is_that_of_one_process(trained):
    check_same_training(trained, "plain")


def test_gradients_are_clipped_after_their_reduction(trained):
    check_same_training(trained, "clipped", "norms")
    assert max(trained.alone["clipped"]["norms"]) > 0.05


def test_an_optimizer_that_decides_by_the_loss(trained_2):
    check_same_training(trained_2, "searched", rel=1e-3, abs=1e-3)


def test_two_optimizers_stepped_by_hand(trained):
    check_same_training(trained, "manual", "rates")


def test_training_continues_from_a_checkpoint(trained):
    check_same_training(trained, "resumed")
    for rank in trained.ranks:
        assert rank["resumed"]["step"] == trained.alone["resumed"]["step"]
        assert rank["resumed"]["files"] == trained.alone["resumed"]["files"]


def test_accumulated_gradients_are_reduced_once_a_step(trained_2):
    check_same_training(trained_2, "accumulated")
    parameters, epochs, steps_per_epoch = 4, 3, 2  # the second one of an epoch has two batches, not four
    assert trained_2.ranks[0]["accumulated"]["reductions"] == parameters * epochs * steps_per_epoch


def test_logged_values_are_averaged_with_sync_dist(trained_2):
    check_same_training(trained_2, "plain", "logged")


def test_validation_early_stopping_test_and_prediction(trained_2):
    alone, (first, second) = trained_2.alone["evaluated"], [rank["evaluated"] for rank in trained_2.ranks]
    assert first == second
    assert first["epochs"] == alone["epochs"] == [0, 1]
    for name in ("val_loss", "right"):
        assert first["metrics"][name] == first["tested"][name] == pytest.approx(alone["metrics"][name], **CLOSE)
    assert first["metrics"]["worst"] >= alone["metrics"]["worst"]  # of smaller batches
    assert (first["rows"], alone["rows"]) == (16, 32)
    assert not first["synchronized"]  # a metric outside of the Trainer is as it was


def test_synchronized_batch_normalization(trained_2):
    check_same_training(trained_2, "normalized", "mean")
    assert trained_2.ranks[0]["normalized"]["kind"] == "BatchNorm1d"  # again, after the fit


def test_mixed_precision(trained_2):
    check_same_training(trained_2, "mixed", rel=0.02, abs=0.01)


def test_all_ranks_skip_a_step_that_overflows_on_one(trained_2):
    first, second = [rank["scaled"] for rank in trained_2.ranks]
    assert first == second
    assert first["scales"] == trained_2.alone["scaled"]["scales"] == [1024, 1024, 512, 512]


def test_strategys_own_collectives(trained_2):
    first, second = [rank["asked"] for rank in trained_2.ranks]
    for answers in (first, second):
        assert answers["gathered"] == [[1.0], [2.0]]
        assert not answers["not differentiated"]
        assert answers["mean of integers"] == 0.5
        assert answers["sum"] == [3] and answers["max"] == 1
        assert (answers["all"], answers["any"]) == (False, True)
        assert answers["broadcast"] == {"from": 1}
    assert (first["gradient"], second["gradient"]) == (2.0, 20.0)  # the sum of both ranks'
    assert (first["ranks"], second["ranks"]) == ([0, 0, 2, True], [1, 1, 2, False])


@pytest.mark.parametrize("version", [1, 2])
def test_exception_on_one_rank_ends_the_job(horovodrun, version):
    result = horovodrun.run("-np", "2", "python", TRAIN, "out", "failing", env=environment(version))
    assert result.returncode == 1
    assert "KeyError: 'broken batch'" in result.stderr
    assert "rank 1 on host localhost" in result.stderr
    assert horovodrun.processes_left() == []


def last_line_of_error(version, *lines, **variables):
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], env={**environment(version), **variables}, capture_output=True, text=True, timeout=120
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr.splitlines()[-1]


def test_elastic_job_is_refused():
    line = last_line_of_error(
        2, "import pytorch_lightning, horovod.lightning", "pytorch_lightning.Trainer(strategy='horovod')", HOROVOD_ELASTIC="1"
    )  # fmt: skip
    assert line.startswith("RuntimeError: HorovodStrategy does not work in elastic jobs")


def test_import_without_lightning_or_with_two_of_them():
    hide = "import sys; sys.path = [path for path in sys.path if 'lightning-2' not in path]"
    assert last_line_of_error(2, hide, "import horovod.lightning").startswith(
        "ImportError: horovod.lightning needs PyTorch Lightning"
    )
    assert last_line_of_error(2, "import horovod.lightning").startswith(
        "ImportError: Both lightning and pytorch_lightning are installed"
    )


@pytest.mark.parametrize("version", [1, 2])
def test_example(horovodrun, version):
    """With 2.x it imports lightning.pytorch, the other tests pytorch_lightning."""
    script = REPOSITORY / "examples/pytorch_lightning_mnist.py"
    result = horovodrun.run("-np", "2", "python", script, env=environment(version))
    assert result.returncode == 0, result.stderr
    (line,) = [line for line in result.stdout.splitlines() if "test accuracy" in line]
    assert float(line.split()[-1].rstrip("%")) > 90, line
