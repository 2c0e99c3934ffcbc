"""The declarations in collectives/nccl/abi.h, compared with NVIDIA's own headers and libraries, from the oldest that is supported to the newest
that there is. No GPU is needed. Fetches a gigabyte the first time, so tools/test does it only with --all."""

import os
import re
import subprocess

import pytest

from conftest import ROOT

# Without a version: the newest.
NCCL = ["nvidia-nccl-cu11==2.14.3", "nvidia-nccl-cu12==2.21.5", "nvidia-nccl-cu12", "nvidia-nccl-cu13"]
CUDA = ["nvidia-cuda-runtime-cu11", "nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime"]


def compile_check(name, folders):
    command = ["g++", "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", str(ROOT)]
    for folder in folders:
        command += ["-isystem", str(folder)]
    return subprocess.run([*command, str(ROOT / "tests" / "nccl" / name)], capture_output=True, text=True)


@pytest.mark.parametrize("requirement", NCCL)
def test_declarations_are_those_of_nccl(wheel, cuda_headers, requirement):
    result = compile_check("nccl_abi_check.cc", [wheel(requirement) / "nvidia" / "nccl" / "include", *cuda_headers])
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("requirement", CUDA)
def test_declarations_are_those_of_the_driver(wheel, requirement):
    folders = list(wheel(requirement).glob("nvidia/*/include"))
    assert any((folder / "cuda.h").exists() for folder in folders)
    result = compile_check("cuda_abi_check.cc", folders)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("requirement", CUDA)
def test_names_are_those_of_the_driver(wheel, requirement):
    """The driver is loaded by name, and names have versions that only macros tell."""
    header = next(wheel(requirement).glob("nvidia/*/include/cuda.h")).read_text()
    asked_for = re.findall(r'resolver\.Get\("(cu\w+)"', (ROOT / "collectives" / "nccl" / "library.cc").read_text())
    assert len(asked_for) == 28
    missing = [name for name in asked_for if not re.search(rf"\b{name}\b", header)]
    assert not missing


@pytest.mark.parametrize("requirement", NCCL)
def test_the_library_does_as_declared(wheel, real_library_test, requirement):
    library = wheel(requirement) / "nvidia" / "nccl" / "lib" / "libnccl.so.2"
    program, folder = real_library_test
    environment = {**os.environ, "NCCL_LIBRARY": str(library)}
    if "==" in requirement:
        environment["NCCL_VERSION"] = requirement.split("==")[1]
    result = subprocess.run([str(program)], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "[  PASSED  ] 5 tests" in result.stdout, result.stdout
