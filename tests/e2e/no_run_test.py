"""Warnings and errors of an elastic job whose script has no function under hvd.elastic.run."""

import sys
from pathlib import Path

JOB = Path(__file__).resolve().parent / "jobs" / "no_run.py"


def test_script_without_a_run_gets_an_explanation(horovodrun, tmp_path):
    result = horovodrun.run("-np", "2", "--min-np", "1", sys.executable, JOB, tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    said = result.stderr.splitlines()
    end = next(i for i, line in enumerate(said) if line.startswith("[0]<stderr>:HorovodInternalError: "))
    assert "bad sample 17" in said[end]
    assert said[end].endswith(
        "; the script has called no function under hvd.elastic.run, so this process can't go on, and another begins at the start"
    )
    (warning,) = [line for line in said[:end] if "outside of hvd.elastic.run" in line]  # of rank 0 alone, once
    assert f"{JOB.name}:16: UserWarning: ElasticSampler.record_batch() outside" in warning
    assert horovodrun.processes_left() == []
