"""Runs the commands of examples/README.md unchanged."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

REPOSITORY = Path(__file__).resolve().parent.parent.parent
COMMANDS = re.findall(r"`horovodrun (.*)`", (REPOSITORY / "examples/README.md").read_text())
# In lightning_test.py, tests/torch_distributed and python/tests/FRAMEWORK, where their frameworks are.
ELSEWHERE = {
    "jax_digits.py",
    "keras_digits.py",
    "keras_elastic_digits.py",
    "mxnet_digits.py",
    "pytorch_lightning_mnist.py",
    "tensorflow2_digits.py",
    "torch_accelerate_digits.py",
    "torch_ddp_digits.py",
    "torch_fsdp_digits.py",
    "torch_parallel_digits.py",
    "torch_pipeline_digits.py",
    "torch_trainer_digits.py",
}

# By script: what rank 0 prints, and from where on a number in it is good.
EXPECTED = {
    "pytorch_mnist.py": (r"epoch 5: .*test accuracy ([\d.]+)%", 85),
    "pytorch_mnist_elastic.py": (r"epoch 5: test accuracy ([\d.]+)%, workers: 2", 85),
    "pytorch_synthetic_benchmark.py": (r"ResNet-18 \((11\.7) million parameters\): .* on 2 worker", 11.7),
    "pytorch_complete.py": (r"epoch 5: test loss [\d.]+, test accuracy ([\d.]+)%", 85),
    "pytorch_complete_elastic.py": (r"epoch 5: test loss [\d.]+, test accuracy ([\d.]+)%, workers: 2", 85),
    "pytorch_amp_accumulation.py": (r"epoch 3: test accuracy ([\d.]+)%", 75),
    "numpy_regression.py": (r"epoch 5: r2 ([\d.]+), workers: 2", 0.99),
    "pytorch_process_sets.py": (r"learning rate 0\.1: test accuracy ([\d.]+)%", 85),
}


def script_of(command):
    return re.search(r"examples/(\w+\.py)", command).group(1)


def test_every_script_has_its_command():
    scripts = {path.name for path in REPOSITORY.glob("examples/*_*.py")}
    assert scripts == {script_of(command) for command in COMMANDS}
    assert scripts == set(EXPECTED) | ELSEWHERE


@pytest.mark.parametrize("command", [command for command in COMMANDS if script_of(command) not in ELSEWHERE])
def test_example(horovodrun, command):
    result = horovodrun.run(*shlex.split(command), cwd=REPOSITORY, timeout=240)
    assert result.returncode == 0, result.stderr
    pattern, least = EXPECTED[script_of(command)]
    found = re.search(r"^\[0\]<stdout>:" + pattern, result.stdout, re.M)
    assert found, result.stdout
    assert float(found.group(1)) >= least, result.stdout


def logged_steps(folder):
    """What TensorBoard shows."""
    return [event.step for event in EventAccumulator(str(folder)).Reload().Scalars("train/loss")]


def test_complete_training_resumes_after_the_last_complete_epoch(horovodrun, tmp_path):
    script = ["-np", "2", "python", REPOSITORY / "examples/pytorch_complete.py"]

    def train(epochs):
        options = ["--checkpoint", tmp_path / "last.pt", "--log-dir", tmp_path / "log", "--epochs", str(epochs)]
        result = horovodrun.run(*script, *options, cwd=REPOSITORY, timeout=240)
        assert result.returncode == 0, result.stderr
        return re.findall(r"^\[0\]<stdout>:epoch (\d+)", result.stdout, re.M)

    assert train(1) == ["1"]
    shutil.copy(tmp_path / "last.pt", tmp_path / "first.pt")
    assert train(3) == ["2", "3"]
    shutil.copy(tmp_path / "first.pt", tmp_path / "last.pt")  # as if it had been killed before it could save epoch 2
    assert train(2) == ["2"]
    assert logged_steps(tmp_path / "log") == list(range(0, 48, 10)), "of 24 steps an epoch"


def test_complete_elastic_training_resumes_from_the_newest_checkpoint(horovodrun, tmp_path):
    script = ["-np", "2", "--min-np", "1", "python", REPOSITORY / "examples/pytorch_complete_elastic.py"]

    def train(epochs):
        options = ["--checkpoint-dir", tmp_path / "kept", "--log-dir", tmp_path / "log", "--epochs", str(epochs)]
        result = horovodrun.run(*script, *options, cwd=REPOSITORY, timeout=240)
        assert result.returncode == 0, result.stderr
        return re.findall(r"^\[0\]<stdout>:epoch (\d+)", result.stdout, re.M)

    assert train(3) == ["1", "2", "3"]
    newest = max((tmp_path / "kept").glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    newest.unlink()  # so that steps which are in the log are trained again
    assert train(4)[-1:] == ["4"]
    assert logged_steps(tmp_path / "log") == list(range(0, 96, 10)), "of 24 steps an epoch"
