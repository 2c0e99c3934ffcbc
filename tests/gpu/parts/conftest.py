"""The GPU check's tests: each needs an NVIDIA GPU and a torch that can use it. tests/gpu/run runs them all, each file as a part with a time limit.

One GPU serves several ranks: NCCL takes ranks with different NCCL_HOSTIDs for those of different hosts, which may have GPUs of the same
name. What they measure is then NCCL's sockets over loopback, for ours and for the peers alike."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bundle"))

import machine
from launcher import Launcher

JOBS = Path(__file__).resolve().parents[1] / "jobs"
RECORD = os.environ.get("GPU_CHECK_RECORD")  # where the runner reads what became of each test
SLOWER = float(os.environ.get("GPU_CHECK_SLOWER", "1"))  # its option, for the jobs' time limits


def record(event, **fields):
    if RECORD:
        with open(RECORD, "a") as file:
            file.write(json.dumps({"event": event, **fields}) + "\n")


def pytest_runtest_logstart(nodeid, location):
    record("begin", test=nodeid.rpartition("::")[2])


def pytest_runtest_logreport(report):
    """A test's own call is its result; its setup and its end count only if they went wrong."""
    if report.when != "call" and report.passed:
        return
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    record(
        "test",
        test=report.nodeid.rpartition("::")[2],
        outcome=report.outcome,
        seconds=report.duration,
        message=text[-4000:],
    )


@pytest.fixture(autouse=True, scope="session")
def gpu():
    # The runner has looked already, and importing torch takes seconds in each part.
    reason = "" if RECORD else machine.why_not()
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def is_simulated():
    import torch

    return "simulated" in torch.cuda.get_device_name(0).lower()


@pytest.fixture(scope="session")
def nccl_version():
    """22307 is 2.23.7."""
    import horovod.torch as hvd

    return hvd.nccl_built()


class _Launcher(Launcher):
    def run(self, *arguments, timeout=60, **options):
        return super().run(*arguments, timeout=timeout * SLOWER, **options)


@pytest.fixture
def horovodrun(tmp_path):
    launcher = _Launcher(tmp_path)
    yield launcher
    launcher.close()


@pytest.fixture
def job():
    """The path of a script of jobs/."""
    return lambda name: str(JOBS / name)


@pytest.fixture
def figure():
    """Records a measured value: figure(name, value, unit, aim)."""

    def add(name, value, unit, aim=""):
        record("figure", name=name, value=value, unit=unit, aim=aim)
        print(f"{name}: {value} {unit}")

    return add


def numbers(output):
    """The JSON objects that rank 0 of a job has printed, one a line."""
    return [
        json.loads(line[line.index("{") :]) for line in output.splitlines() if re.match(r"(\[\d+\]<stdout>:)?\{", line)
    ]


def group_figures(figure, where, rows):
    """Records the rows of jobs/grouping.py."""
    for row in rows:
        for way, taken in row["us"].items():
            figure(f"{where}: {row['tensors']}: {way}", taken, "us")


@pytest.fixture
def checks(horovodrun, job):
    """Runs a job of jobs/checks.py, and records each of its checks as a test. The test fails if one has failed."""

    def run(name, ranks, timeout, *arguments, env=None):
        result = horovodrun.run("-np", ranks, *arguments, sys.executable, job(name), env=env, timeout=timeout)
        failed = []
        for entry in numbers(result.stdout):
            errors = "\n".join(f"rank {rank}: {text}" for rank, text in entry["errors"].items())
            outcome = "failed" if errors else "skipped" if entry["skipped"] else "passed"
            record(
                "test",
                test=f"{name}[{ranks}] {entry['check']}",
                outcome=outcome,
                seconds=entry["seconds"],
                message=errors or entry["skipped"],
            )
            if errors:
                failed.append(f"{entry['check']}: {errors}")
        if failed:
            print(result.stdout, result.stderr, sep="\n")  # what else the ranks had to say, for the log
        assert not failed, "\n".join(failed)
        assert result.returncode == 0, result.stdout + result.stderr
        return result

    return run


USED_MEMORY = """
import ctypes
cuda, context, free, total = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxPushCurrent_v2(context) == 0 and cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
print(total.value - free.value)
"""


def used_memory():
    """Bytes of the first GPU that are in use by all processes, as a new process sees it, which does not take the seconds of importing torch."""
    return int(subprocess.check_output([sys.executable, "-c", USED_MEMORY], text=True, timeout=60))


@pytest.fixture
def leaves_no_memory():
    """Fails if more of the GPU's memory is in use after the test than before it. The driver may take a while to reclaim a killed process's."""
    before = used_memory()
    yield
    deadline = time.monotonic() + 15
    while (after := used_memory()) > before + (64 << 20):
        assert time.monotonic() < deadline, f"{(after - before) >> 20} MiB of the GPU's memory are still in use"
