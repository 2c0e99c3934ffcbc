"""Elastic training within fit(): a job that grows and shrinks, and one of whose workers is killed."""

import json
import os
import sys
from pathlib import Path

import pytest

JOB = Path(__file__).resolve().parent / "jobs" / "keras_elastic.py"
SAMPLES = 48

# How a Keras is chosen: arguments of the job, and variables.
TENSORFLOW = {"keras 3 on tensorflow": ([], {"KERAS_BACKEND": "tensorflow"})}
JAX = {"keras 3 on jax": ([], {"KERAS_BACKEND": "jax"})}
TORCH = {"keras 3 on torch": ([], {"KERAS_BACKEND": "torch"})}
TF_KERAS = {"tf-keras": ([], {"TF_USE_LEGACY_KERAS": "1"})}
KERAS_2 = {"keras 2": (["tf.keras"], {}), "keras 2, legacy": (["tf.keras", "legacy"], {})}
ENVIRONMENTS = {"venv-tf-new": {**TENSORFLOW, **JAX, **TF_KERAS}, "venv-tf-mid": TENSORFLOW, "venv-pip": TORCH}
KINDS = ENVIRONMENTS.get(Path(os.environ.get("VIRTUAL_ENV", "")).name, KERAS_2)


def epochs_of(result):
    assert result.returncode == 0, result.stdout + result.stderr
    return [json.loads(line.split(">:", 1)[1]) for line in result.stdout.splitlines() if ">:{" in line]


def check_epochs(epochs):
    """Every epoch is there once, and every sample is once in each, but for some that come twice so that all ranks have equally many."""
    assert [epoch["fits"] for epoch in epochs] == list(range(len(epochs)))
    for epoch in epochs:
        assert epoch["epoch"] == epoch["fits"] + 1  # they are done
        samples = [sample for batch in epoch["batches"] for sample in batch]
        assert sorted(set(samples)) == list(range(SAMPLES)) and len(samples) - SAMPLES < 4


def sizes_of(epochs):
    """Of the worlds, one after another."""
    sizes = [size for epoch in epochs for size in epoch["sizes"]]
    return [size for i, size in enumerate(sizes) if i == 0 or sizes[i - 1] != size]


def environment(variables):
    return {"OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", **variables}


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_grows_and_shrinks_within_fit(horovodrun, tmp_path, kind):
    arguments, variables = KINDS[kind]
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost:2\n")
    script = tmp_path / "discover"
    script.write_text(f"#!/bin/sh\ncat {hosts}\n")
    script.chmod(0o755)
    flags = ["-np", "2", "--min-np", "2", "--max-np", "4", "--host-discovery-script", script]
    job = [sys.executable, JOB, "resize", hosts, *arguments]
    epochs = epochs_of(horovodrun.run(*flags, *job, env=environment(variables), timeout=300))
    check_epochs(epochs)
    sizes = sizes_of(epochs)
    assert sizes[0] == 2 and 4 in sizes and sizes[-1] == 3
    if "torch" not in kind:
        assert len({epoch["traces"] for epoch in epochs}) == 1, "traced again"
    assert horovodrun.processes_left() == []


@pytest.mark.parametrize("kind", KINDS)
def test_survivors_of_a_kill_within_fit_continue(horovodrun, kind):
    arguments, variables = KINDS[kind]
    flags = ["-np", "3", "--min-np", "2", "-H", "localhost:3"]
    job = [sys.executable, JOB, "kill", *arguments]
    epochs = epochs_of(horovodrun.run(*flags, *job, env=environment(variables), timeout=300))
    check_epochs(epochs)
    assert sizes_of(epochs) == [3, 2, 3]
    assert horovodrun.processes_left() == []
