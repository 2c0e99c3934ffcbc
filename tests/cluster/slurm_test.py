"""The examples of examples/slurm as they are, on a real Slurm whose nodes are test hosts."""

import re
import shlex
from pathlib import Path

import pytest

from netns import REPOSITORY, Cluster
from slurm import Slurm
from training_log import TrainingLog

EXAMPLE = REPOSITORY / "examples/slurm"
TRAIN = ["python", Path(__file__).resolve().parent / "scripts/elastic_train.py", "--framework", "numpy"]


@pytest.fixture
def cluster(tmp_path):
    """Two nodes, and a host from which jobs are submitted."""
    with Cluster(["a", "b", "login"], tmp_path) as running:
        yield running


@pytest.fixture
def slurm(cluster, tmp_path):
    return Slurm(cluster["login"], [cluster["a"], cluster["b"]], tmp_path / "slurm")


@pytest.fixture
def work(tmp_path):
    """The directory that jobs are submitted from."""
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


class Training:
    """The batch script with the test's training."""

    def __init__(self, slurm, work, *flags, script=EXAMPLE / "train.sbatch"):
        self.job = slurm.submit([script, *TRAIN, *map(str, flags)], work)
        self.log = TrainingLog(self.job.output)

    def wait_for_size(self, size):
        self.log.wait_until(lambda: self.log.trains_with(size), 60, f"a world of {size}")

    def wait_for_step(self, step):
        self.log.wait_until(lambda: self.log.last_step() >= step, 60, f"step {step}")


def check_nothing_is_left(cluster, work):
    for name in "ab":
        assert cluster[name].find("horovod") == []
    assert list(work.glob(".horovod*")) == []


def test_lost_node_does_not_end_the_job(cluster, slurm, work):
    end = work / "end"
    training = Training(slurm, work, "--epochs", 1000, "--end-file", end, "--samples", 160, "--step-seconds", 0.02)
    training.wait_for_size(4)
    assert cluster["a"].find("elastic_train.py") and cluster["b"].find("elastic_train.py")
    training.wait_for_step(2)
    cluster["b"].cut()  # the batch script runs on a
    training.wait_for_size(2)
    slurm.set_down(cluster["b"])
    end.touch()
    assert training.job.wait(60) == "COMPLETED 0:0"
    training.log.wait_until(lambda: len(training.log.all("done")) == 2, 60, "the last words of 2 workers")
    assert len({entry["digest"] for entry in training.log.all("done")}) == 1
    assert list(work.glob(".horovod*")) == []


def test_drained_node_and_time_limit_lose_no_step(cluster, slurm, work):
    script = work / "train.sbatch"
    # When all leave they wait for successors, half of the grace.
    script.write_text((EXAMPLE / "train.sbatch").read_text().replace("grace=20", "grace=6"))
    flags = ["--epochs", 1000, "--checkpoint-dir", work / "checkpoints"]
    training = Training(slurm, work, *flags, script=script)
    training.wait_for_size(4)
    place = ["--overlap", f"--jobid={training.job.number}", "--nodes=1", "--nodelist=b"]
    drained = slurm.run(["srun", *place, *shlex.split("pkill -TERM -o -x horovod-agent")], work)
    assert drained.returncode == 0, drained.stderr
    training.wait_for_size(2)
    slurm.run(
        ["scancel", "--batch", "--signal=USR1", training.job.number], work
    )  # as it is shortly before the time limit
    slurm.wait_for_controller(f"Requeuing JobId={training.job.number}", 60)
    slurm.run(["scancel", training.job.number], work)  # which would wait for two minutes now
    again = Training(slurm, work, *flags, script=script)
    again.wait_for_size(4)
    ((_, steps),) = again.log.worlds().values()
    training.wait_for_step(steps)
    assert training.log.last_step() == steps
    assert '"event": "restore"' not in training.job.output.text
    slurm.run(["scancel", again.job.number], work)
    slurm.wait_until_idle(60)
    check_nothing_is_left(cluster, work)


def test_static_job_from_a_login_node(cluster, slurm, work):
    """The README's commands."""
    blocks = re.findall(r"(?:^    .*\n)+", (EXAMPLE / "README.md").read_text(), re.M)
    (commands,) = [block for block in blocks if "horovod-rendezvousd" in block]
    mnist = f"python {REPOSITORY}/examples/pytorch_mnist.py --epochs 1"
    commands = "umask 022\n" + commands.replace("python train.py", mnist) + 'wait "$!"\n'
    result = slurm.run(["bash", "-eu", "-c", commands], work, env={"HOME": str(work)})
    assert result.returncode == 0, result.stdout + result.stderr
    assert "4 worker(s)" in result.stdout
    assert "4 ranks finished" in result.stderr
    check_nothing_is_left(cluster, work)


def test_scripts_alone_are_taken(cluster, slurm, work):
    """One process in an allocation for many is valid. slurm_tasks_test has scripts that srun starts several times."""
    (work / "script.py").write_text("import horovod.numpy as hvd; hvd.init(); print('size', hvd.size())\n")
    (work / "alone.sbatch").write_text("#!/bin/sh\npython script.py\nsrun --ntasks=1 python script.py\n")
    alone = slurm.submit(["--ntasks=4", "alone.sbatch"], work)
    alone.output.wait_for("^size 1$", 120, count=2)
    alone.wait(60)
