"""An elastic job that is asked to end while nobody reads its output, whose pipe stays open: a paused pager, or a log collector that hangs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from polling import poll_until

JOB = Path(__file__).resolve().parent / "jobs" / "floods.py"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP, "stop"])
def test_workers_that_nobody_reads_come_to_their_last_commit(tmp_path, how):
    reading, writing = os.pipe()
    command = ["horovodrun", "-np", "2", "--min-np", "1", "--grace", "3600", sys.executable, str(JOB), str(tmp_path)]
    own = {**os.environ, "OMP_NUM_THREADS": "1", "XDG_RUNTIME_DIR": str(tmp_path)}  # `stop` sees this job alone
    job = subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE, text=True, env=own, start_new_session=True)
    try:
        os.close(writing)
        poll_until(lambda: len(list(tmp_path.glob("floods*"))) == 2, "both write")
        if how == "stop":
            stop = subprocess.run(["horovodrun", "stop"], env=own, capture_output=True, text=True, timeout=100)
            assert stop.returncode == 0, stop.stderr
        else:
            job.send_signal(how)
        said = job.communicate(timeout=100)[1]
    finally:
        job.kill()
        os.close(reading)
    assert job.returncode == (143 if how == "stop" else 128 + how), said
    assert "newest checkpoint: commit 6, " in said and "is lost" not in said
    assert len(list((tmp_path / "checkpoints").glob("*.hvd"))) == 1
