"""Runs the commands of examples/README.md unchanged."""

import re
import shlex
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent.parent
COMMANDS = re.findall(r"`horovodrun (.*)`", (REPOSITORY / "examples/README.md").read_text())
# In lightning_test.py and python/tests/FRAMEWORK, where their frameworks are.
ELSEWHERE = {
    "jax_digits.py",
    "keras_digits.py",
    "keras_elastic_digits.py",
    "mxnet_digits.py",
    "pytorch_lightning_mnist.py",
    "tensorflow2_digits.py",
}

# By script: what rank 0 prints, and from where on a number in it is good.
EXPECTED = {
    "pytorch_mnist.py": (r"epoch 5: .*test accuracy ([\d.]+)%", 85),
    "pytorch_mnist_elastic.py": (r"epoch 5: test accuracy ([\d.]+)%, workers: 2", 85),
    "pytorch_synthetic_benchmark.py": (r"ResNet-18 \((11\.7) million parameters\): .* on 2 worker", 11.7),
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
