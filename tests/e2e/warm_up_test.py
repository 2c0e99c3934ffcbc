"""A newcomer to an elastic job whose first collective comes before its first run: a step of its optimizer, a process set."""

from pathlib import Path

import pytest

from growing import run_growing

JOBS = Path(__file__).resolve().parent / "jobs"


def test_its_step_meets_that_of_the_others_reset_callback(horovodrun, tmp_path):
    weights = run_growing(horovodrun, tmp_path, JOBS / "torch_warm_up.py")
    assert len(weights) == 2 and len(set(weights)) == 1


@pytest.mark.parametrize("mode", ["again", "kept", "once"])
def test_its_process_sets_are_those_of_the_others(horovodrun, tmp_path, mode):
    """Which add them in the reset callback, too, or have them from before."""
    totals = run_growing(horovodrun, tmp_path, JOBS / "process_set_warm_up.py", mode, count=2)
    assert len(totals) == 3 and len(set(totals)) == 1
