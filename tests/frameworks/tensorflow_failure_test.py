"""An operation of a tf.function that fails because another rank has left."""

import os
import sys
from pathlib import Path

JOB = Path(__file__).resolve().parent / "jobs" / "leaves_first.py"


def test_rank_that_left_first_is_the_cause(horovodrun, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    result = horovodrun.run("-np", "2", sys.executable, JOB, "tensorflow", tmp_path / "fifo", timeout=120)
    assert result.returncode == 1
    assert "[0]<stderr>:HorovodInternalError: Horovod has been shut down" in result.stderr
    assert "Graph execution error" not in result.stderr
    assert "Cause: rank 1 on host localhost left first" in result.stderr
