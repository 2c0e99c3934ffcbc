"""Ranks issue TensorFlow's operations in different orders, with one thread for all of them."""

import sys
from pathlib import Path

import pytest

JOBS = Path(__file__).resolve().parent / "jobs"


@pytest.mark.parametrize("ranks", [2, 3])
def test_random_programs_end_with_the_right_values(horovodrun, ranks):
    result = horovodrun.run("-np", str(ranks), sys.executable, JOBS / "tensorflow_order.py", timeout=400)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("1000 programs\n") == ranks
    assert horovodrun.processes_left() == []
