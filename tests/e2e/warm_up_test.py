"""A newcomer to an elastic job whose first collective is a step of its optimizer, before its first run."""

from pathlib import Path

from growing import run_growing

JOB = Path(__file__).resolve().parent / "jobs" / "torch_warm_up.py"


def test_its_step_meets_that_of_the_others_reset_callback(horovodrun, tmp_path):
    weights = run_growing(horovodrun, tmp_path, JOB)
    assert len(weights) == 2 and len(set(weights)) == 1
