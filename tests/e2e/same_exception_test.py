"""The same exception of two workers: a bug in the script if no commit lies between."""

import sys
from pathlib import Path

JOB = Path(__file__).resolve().parent / "jobs" / "raises_again.py"


def test_exception_that_comes_again_after_commits_is_a_failure_like_any_other(horovodrun, tmp_path):
    command = ["-np", "2", "--min-np", "2", "-H", "localhost:2", sys.executable, JOB, tmp_path]
    result = horovodrun.run(*command, env={"OMP_NUM_THREADS": "1"}, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("ends at 25") == 2, result.stdout
    assert (tmp_path / "again").exists()
    assert horovodrun.processes_left() == []
