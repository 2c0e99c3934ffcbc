"""A folder with files of this version and of another one: the import says what to remove."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import horovod

PACKAGE = Path(horovod.__file__).parent
CLEAN = f"horovod-{horovod.__version__}.dist-info"


@pytest.fixture
def site(tmp_path):
    """A folder as pip makes it, with the modules that `import horovod` reads."""
    (tmp_path / "horovod").mkdir()
    for path in PACKAGE.glob("*.py"):
        shutil.copyfile(path, tmp_path / "horovod" / path.name)
    (tmp_path / CLEAN).mkdir()
    return tmp_path


def imported(site):
    code = "import horovod; print(horovod.__version__, horovod.__file__)"
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(site)}, capture_output=True, text=True
    )


def test_clean_folder(site):
    assert imported(site).stdout.split() == [horovod.__version__, f"{site}/horovod/__init__.py"]


@pytest.mark.parametrize(
    "left", ["horovod-0.28.1.dist-info", "horovod-0.28.1-py3.9.egg-info", "horovod/runner/mpi_run.py"]
)
def test_mixed_folder_is_one_line_that_says_what_to_do(site, left):
    (site / left).parent.mkdir(exist_ok=True)
    (site / left).touch()
    result = imported(site)
    assert result.returncode == 1
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("ImportError: ")]
    assert line.startswith(f"ImportError: {site} contains horovod {horovod.__version__} and another version ({left}): ")
    assert "run 'python -m pip uninstall -y horovod' until it finds none" in line
    assert result.stderr.endswith(line + "\n")


def test_other_packages_are_not_taken_for_another_version(site):
    for name in ("horovod_extras-2.0.dist-info", "horovodrun-2.0.dist-info", "torch-2.0.dist-info"):
        (site / name).mkdir()
    assert imported(site).returncode == 0
