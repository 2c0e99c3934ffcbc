"""horovod.torch on a device that is neither CPU nor CUDA: torch's xpu, which is Intel's GPUs, as simulated_xpu.cc plays it. No such hardware was at
hand: what Intel's own kernels, streams and drivers do is not tested.

Runs beside pip's torch, which comes with headers."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
GUIDE = HERE.parent / "e2e/scripts/guide_xpu.py"


def run(horovodrun, *arguments, env):
    result = horovodrun.run("-np", "2", *arguments, env=env, timeout=180)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.parametrize("job", ["operations", "training"])
def test_staged_in_the_order_of_the_stream(horovodrun, device, job):
    output = run(horovodrun, "python", HERE / f"jobs/{job}.py", env=device)
    assert sorted(output.split()) == ["[0]<stdout>:done", "[1]<stdout>:done"]


def test_elastic_job_continues_after_a_loss(horovodrun, device):
    output = run(horovodrun, "--min-np", "1", "-H", "localhost:2", "python", HERE / "jobs/elastic.py", env=device)
    begun = re.findall(r"rank (\d) begins with step (\d)", output)
    assert sorted(begun) == [("0", "0"), ("0", "3"), ("1", "0"), ("1", "3")]
    assert output.count(":done") == 2


def ends(output):
    """Each rank's device and the accuracy that it reached."""
    found = sorted(re.findall(r"rank (\d) of 2: accuracy ([\d.]+) on (\S+)", output))
    return [(place, float(accuracy)) for _, accuracy, place in found]


def test_script_of_the_guide_trains_on_the_device_as_on_the_cpu(horovodrun, device):
    places, found = zip(*ends(run(horovodrun, "python", GUIDE, "--epochs", "2", env=device)))
    assert places == ("xpu:0", "xpu:1")
    places, expected = zip(*ends(run(horovodrun, "python", GUIDE, "--epochs", "2", env={"OMP_NUM_THREADS": "1"})))
    assert places == ("cpu", "cpu") and min(expected) > 0.5
    assert found == pytest.approx(expected, abs=0.01)
