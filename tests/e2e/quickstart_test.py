"""tools/quickstart: what it sets up and what it runs, with stand-ins for the tools that it calls."""

import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent.parent
NOTE = '#!/bin/sh\necho "$(basename "$0") $*" "${VIRTUAL_ENV##*/}"\n'

# By framework: what is asked of tools/setup, the environment, the script.
FRAMEWORKS = {
    "pytorch": ("--torch debian", "venv-debian", "examples/pytorch_mnist.py"),
    "tensorflow": ("--frameworks newest", "venv-tf-new", "examples/tensorflow2_digits.py"),
    "keras": ("--frameworks newest", "venv-tf-new", "examples/keras_digits.py"),
    "jax": ("--frameworks newest", "venv-tf-new", "examples/jax_digits.py"),
}


@pytest.fixture
def quickstart(tmp_path, monkeypatch):
    """Runs it in a checkout whose setup, build and horovodrun only print how they were called."""
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    stage = tmp_path / ".dev" / "stage" / "horovod" / "bin"
    stage.mkdir(parents=True)
    (tmp_path / "tools").mkdir()
    for name in ("quickstart", "env.sh"):
        shutil.copy(REPOSITORY / "tools" / name, tmp_path / "tools")
    for program in (tmp_path / "tools/setup", tmp_path / "tools/build", stage / "horovodrun"):
        program.write_text(NOTE)
        program.chmod(0o755)

    def run(*arguments):
        return subprocess.run([tmp_path / "tools/quickstart", *arguments], capture_output=True, text=True, timeout=60)

    return run


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_it_sets_up_builds_and_trains(quickstart, framework):
    setup, venv, script = FRAMEWORKS[framework]
    result = quickstart("--framework", framework)
    assert result.stdout.split("\n") == [f"setup {setup} ", "build  ", f"horovodrun -np 2 python {script} {venv}", ""]
    assert (REPOSITORY / script).exists()
    assert (REPOSITORY / "tools/setup").read_text().count(setup.split()[1]) > 1


def test_pytorch_is_the_default_and_its_script_gets_arguments(quickstart):
    result = quickstart("--epochs", "2")
    assert result.stdout.splitlines()[-1] == "horovodrun -np 2 python examples/pytorch_mnist.py --epochs 2 venv-debian"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--framework", "caffe"], "--framework takes pytorch, tensorflow, keras or jax, not 'caffe'"),
        (["--framework"], "--framework needs a value: pytorch, tensorflow, keras or jax"),
        (["--framework", "jax", "--epochs", "2"], "examples/jax_digits.py takes no arguments, got: --epochs 2"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_set_up(quickstart, arguments, message):
    result = quickstart(*arguments)
    assert (result.returncode, result.stdout, result.stderr) == (2, "", f"quickstart: {message}\n")


def test_help_names_the_frameworks(quickstart):
    result = quickstart("--help")
    assert result.returncode == 0
    assert all(f"--framework {framework} " in result.stdout for framework in FRAMEWORKS)
    assert all(script in result.stdout for _, _, script in FRAMEWORKS.values())
