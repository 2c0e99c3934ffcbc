"""The whole GPU check on the simulated GPU: the bundle of dist/gpu (tools/gpu_bundle), unpacked and run as on a machine with a real one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "bundle"))
sys.path.insert(0, str(Path(__file__).resolve().parent / "simulated"))

import build
from parts import PARTS

BUNDLE = Path(__file__).resolve().parents[2] / "dist/gpu/run"
# What needs a real GPU, and why. All else has to pass.
SKIPPED = {
    "streams.py[2] graph_beside_operations": "the simulated GPU replays no graphs",
    "streams.py[1] graph_beside_operations": "the simulated GPU replays no graphs",
    "streams.py[2] process_group_of_torch_beside_ours": "this torch has no NCCL",
    "streams.py[1] process_group_of_torch_beside_ours": "this torch has no NCCL",
    "wrong_use.py[2] tensors_on_two_gpus": "needs two GPUs",
    "arrays.py[2] capture_by_cupy_is_refused_in_one_line": "needs CuPy",
    "arrays.py[1] capture_by_cupy_is_refused_in_one_line": "needs CuPy",
    "test_arrays[nccl-NCCL_ONLY]": "JAX is not installed",
    "test_arrays[host-NCCL]": "JAX is not installed",
    "xla_calls.py[2] no_copy_between_device_and_host": "these ranks go through host memory",
    **dict.fromkeys(
        [
            "test_operations_are_those_of_the_host",
            "test_bus_bandwidth_beside_torch",
            "test_ways_to_reduce_many_tensors",
            "test_new_worlds",
        ],
        "nvidia-cuda-mps-control is not installed",
    ),
    "test_short_job_under_memcheck": "compute-sanitizer is not installed",
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What gpu.json has, by part, and the folder."""
    assert BUNDLE.exists(), "there is no bundle: tools/gpu_bundle makes it"
    out = tmp_path_factory.mktemp("gpu") / "out"
    environment = {**os.environ, **build.environment(build.build()), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, BUNDLE, "--out", out, "--seconds", "1500", "--slower", "5"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1600)
    assert sorted(path.name for path in out.glob("*")) == ["gpu.json", "junit.xml", "log.txt", "table.txt"], done.stderr
    print(done.stdout)
    read = json.loads((out / "gpu.json").read_text())
    return {"code": done.returncode, "machine": read["machine"], **{part["name"]: part for part in read["parts"]}}


@pytest.mark.parametrize("name", [part.name for part in PARTS])
def test_part_passes(results, name):
    part = results[name]
    bad = [test for test in part["tests"] if test["outcome"] == "failed"]
    assert part["passed"], "\n".join([part["problem"], *(f"{test['test']}: {test['message']}" for test in bad)])
    for test in part["tests"]:
        assert test["outcome"] == "passed" or SKIPPED[test["test"]] in test["message"]


def test_whole_check_passes_and_says_what_it_ran_on(results):
    assert results["code"] == 0
    assert "simulated" in results["machine"]["card"].lower()
    assert results["machine"]["NCCL"] and results["machine"]["torch"]
