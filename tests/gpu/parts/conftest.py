"""The GPU check's tests: each needs an NVIDIA GPU and a torch that can use it. tests/gpu/run runs them all, each file as a part with a time limit.

One GPU serves several ranks: NCCL takes ranks with different NCCL_HOSTIDs for those of different hosts, which may have GPUs of the same
name. What they measure is then NCCL's sockets over loopback, for ours and for the peers alike."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bundle"))

import machine
from launcher import Launcher

JOBS = Path(__file__).resolve().parents[1] / "jobs"
RECORD = os.environ.get("GPU_CHECK_RECORD")  # where the runner reads what became of each test


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
    reason = machine.why_not()
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


@pytest.fixture
def horovodrun(tmp_path):
    launcher = Launcher(tmp_path)
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
        assert not failed, "\n".join(failed)
        assert result.returncode == 0, result.stdout + result.stderr
        return result

    return run


def used_memory():
    """Bytes of the first GPU that are in use by all processes, as a new process sees it."""
    script = "import torch; free, total = torch.cuda.mem_get_info(0); print(total - free)"
    return int(subprocess.check_output([sys.executable, "-c", script], text=True, timeout=60).split()[-1])


@pytest.fixture
def leaves_no_memory():
    """Fails if more of the GPU's memory is in use after the test than before it."""
    before = used_memory()
    yield
    after = used_memory()
    assert after <= before + (64 << 20), f"{(after - before) >> 20} MiB of the GPU's memory are still in use"
