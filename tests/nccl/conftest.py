"""NCCL and CUDA as NVIDIA's wheels have them, fetched by pip once and kept in .dev/nccl; without them these tests are skipped."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
KEPT = ROOT / ".dev" / "nccl"


def unpack(wheel, target):
    """Headers, and NCCL's library: of several hundred megabytes the few that are needed here."""
    with zipfile.ZipFile(wheel) as files:
        for name in files.namelist():
            if "/include/" in name or name.endswith("libnccl.so.2"):
                files.extract(name, target)


def fetch(requirement):
    """The folder with what is in a wheel; skips the test if it can't be had."""
    target = KEPT / requirement
    if target.exists():
        return target
    unfinished = KEPT / (requirement + ".new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(unfinished), requirement]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    wheels = list(unfinished.glob("*.whl"))
    if result.returncode != 0 or not wheels:
        pytest.skip(f"{requirement} can't be fetched: {(result.stderr.strip().splitlines() or ['no wheel'])[-1]}")
    for wheel in wheels:
        unpack(wheel, unfinished)
        wheel.unlink()
    unfinished.rename(target)
    return target


@pytest.fixture(scope="session")
def wheel():
    return fetch


@pytest.fixture(scope="session")
def cuda_headers():
    """Where the runtime's headers are that NCCL's include, of the newest CUDA."""
    folders = [
        fetch(name)
        for name in ("nvidia-cuda-runtime==13.0.48", "nvidia-cuda-crt==13.0.48", "nvidia-cuda-cccl==13.0.50")
    ]
    return [path for folder in folders for path in folder.glob("nvidia/*/include")]


@pytest.fixture(scope="session")
def real_library_test():
    """The program of collectives/nccl/real_library_test.cc and the folder to run it in."""
    target = "//collectives/nccl:real_library_test"
    subprocess.run(
        ["bazel", "build", "--ui_event_filters=-info,-debug", target], cwd=ROOT, check=True, capture_output=True
    )
    found = subprocess.run(["bazel", "info", "bazel-bin"], cwd=ROOT, check=True, capture_output=True, text=True)
    program = Path(found.stdout.strip()) / "collectives" / "nccl" / "real_library_test"
    return program, Path(str(program) + ".runfiles") / "horovod"
