"""tools/quickstart and tools/run: what they set up and what they run, with stand-ins for the tools that they call; and what all tools refuse."""

import functools
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


# By arguments of tools/run: what is asked of tools/setup, the environment.
ENVIRONMENTS = {
    "": ("--torch pip --extras", "venv-pip"),
    "--torch debian": ("--torch debian --extras", "venv-debian"),
    "--frameworks newest": ("--frameworks newest", "venv-tf-new"),
    "--frameworks oldest": ("--frameworks some", "venv-tf-old"),
    "--frameworks mxnet": ("--frameworks some", "venv-mxnet"),
    "--engines newest": ("--engines newest", "venv-engines"),
    "--engines oldest": ("--engines all", "venv-engines-old"),
}


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """Runs one in a checkout whose setup, build and horovodrun only print how they were called."""
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    stage = tmp_path / ".dev" / "stage" / "horovod" / "bin"
    stage.mkdir(parents=True)
    (tmp_path / "tools").mkdir()
    for name in ("quickstart", "run", "env.sh", "rooms"):
        shutil.copy(REPOSITORY / "tools" / name, tmp_path / "tools")
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    for program in (tmp_path / "tools/setup", tmp_path / "tools/build", stage / "horovodrun"):
        program.write_text(NOTE)
        program.chmod(0o755)

    def run(name, *arguments):
        return subprocess.run([tmp_path / "tools" / name, *arguments], capture_output=True, text=True, timeout=60)

    return run


@pytest.fixture
def quickstart(tool):
    return functools.partial(tool, "quickstart")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_it_sets_up_builds_and_trains(quickstart, framework):
    setup, venv, script = FRAMEWORKS[framework]
    for arguments in (["--framework", framework], ["--framework=" + framework]):
        result = quickstart(*arguments)
        command = f"horovodrun -np 2 python {script}"
        assert result.stdout.split("\n") == [f"setup {setup} ", "build  ", f"{command} {venv}", ""]
        assert result.stderr.splitlines()[-1] == "==> 3 of 3: " + command
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
        (["--framework="], "--framework takes pytorch, tensorflow, keras or jax, not ''"),
        (["extra"], "unknown argument extra (see --help)"),
        (
            ["--framwork", "keras"],
            "unknown option --framwork: neither tools/quickstart nor examples/pytorch_mnist.py has it",
        ),
        (
            ["--framework=pytorch", "--epochs", "2", "--nonsense=1"],
            "unknown option --nonsense=1: neither tools/quickstart nor examples/pytorch_mnist.py has it",
        ),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_set_up(quickstart, arguments, message):
    result = quickstart(*arguments)
    assert (result.returncode, result.stdout, result.stderr) == (2, "", f"quickstart: {message}\n")


@pytest.mark.parametrize("arguments", ENVIRONMENTS)
def test_a_command_runs_in_the_environment_that_is_asked_for(tool, arguments):
    setup, venv = ENVIRONMENTS[arguments]
    result = tool("run", *arguments.split(), "horovodrun", "--framework", "x")
    assert result.stdout.split("\n") == [f"setup {setup} ", "build  ", f"horovodrun --framework x {venv}", ""]


@pytest.mark.parametrize(
    "name, arguments, message",
    [
        ("run", [], "no command is given (see --help)"),
        ("run", ["--torch", "x", "true"], "--torch takes debian or pip, not 'x'"),
        ("run", ["--torch"], "--torch needs a value: debian or pip"),
        ("run", ["--frameworks", "new", "true"], "--frameworks takes newest, oldest or mxnet, not 'new'"),
        ("run", ["--engines", "spark", "true"], "--engines takes newest or oldest, not 'spark'"),
        ("run", ["--framework", "newest", "true"], "unknown option --framework (see --help)"),
        ("setup", ["--frameworks"], "--frameworks needs a value: newest, some or all"),
        ("setup", ["--frameworks", "sme"], "--frameworks takes newest, some or all, not 'sme'"),
        ("setup", ["--torch", ""], "--torch takes debian, pip or none, not ''"),
        ("setup", ["--lightning"], "--lightning needs --torch pip"),
        ("setup", ["--nonsense"], "unknown argument --nonsense (see --help)"),
        ("build_wheel", ["extra"], "takes no arguments, got: extra"),
        ("test", ["--unti"], "unknown argument --unti (see --help)"),
        ("build", ["--nonsense"], "usage: tools/build [--package]"),
        ("format", ["--nonsense"], "usage: tools/format [--check]"),
    ],
)
def test_tools_refuse_bad_input_in_one_line(name, arguments, message):
    result = subprocess.run([REPOSITORY / "tools" / name, *arguments], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (2, "", f"{name}: {message}\n")


@pytest.mark.parametrize("name", ["quickstart", "run", "setup", "build_wheel", "test", "bench/run"])
def test_tools_have_help(name):
    result = subprocess.run([REPOSITORY / "tools" / name, "--help"], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
    assert f"  tools/{name}" in result.stdout


def test_help_names_the_frameworks(quickstart):
    result = quickstart("--help")
    assert result.returncode == 0
    assert all(f"--framework {framework} " in result.stdout for framework in FRAMEWORKS)
    assert all(script in result.stdout for _, _, script in FRAMEWORKS.values())
