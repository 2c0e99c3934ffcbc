"""The declarations in frameworks/jax/xla_ffi_abi.h, compared with the header of this jaxlib."""

import subprocess
from pathlib import Path

import jaxlib

HERE = Path(__file__).resolve().parent


def test_declarations_are_those_of_jaxlib():
    include = Path(jaxlib.__file__).parent / "include"
    assert (include / "xla/ffi/api/c_api.h").exists()
    command = [
        "g++",
        "-std=c++17",
        "-fsyntax-only",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-I",
        HERE.parents[1],
        "-isystem",
        include,
    ]
    done = subprocess.run([*command, HERE / "xla_ffi_abi_check.cc"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
