"""Frameworks on the backend hvd: each training gives what it gives over Gloo. A framework that is not installed is skipped."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "scripts"
PATIENCE = 300  # seconds; a training takes some
UNDER_HOROVODRUN = ["lightning", "accelerate", "transformers"]
# What a wheel has: torch registers the backend by itself, also in processes of others.
ENTRY_POINT = "[torch.backends]\nhvd = horovod._torch_autoload:register\n"


def train(folder: Path, framework: str, *launcher: str) -> None:
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    installed = folder / "horovod-0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: horovod\nVersion: 0\n")
    (installed / "entry_points.txt").write_text(ENTRY_POINT)
    variables = {
        **os.environ,
        "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{folder}",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "DS_ACCELERATOR": "cpu",
    }
    results = []
    for backend in ("gloo", "hvd"):
        file = folder / f"{backend}.json"
        command = [*launcher, sys.executable, SCRIPTS / f"with_{framework}.py", backend, file]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stdout + done.stderr
        results.append(file.read_text())
    assert len(results[0]) > 100 and results[0] == results[1], results


@pytest.mark.parametrize("framework", UNDER_HOROVODRUN)
def test_as_over_gloo(tmp_path: Path, framework: str) -> None:
    train(tmp_path, framework, "horovodrun", "-np", "2")


def test_deepspeed_is_as_over_gloo(tmp_path: Path) -> None:
    """It compiles an extension when it first runs, which takes a minute."""
    train(tmp_path, "deepspeed", "horovodrun", "-np", "2")


def test_ray_train_is_as_over_gloo(tmp_path: Path) -> None:
    train(tmp_path, "ray")
