"""The backend hvd under launchers: ours, with and without encryption, and torchrun."""

import os
import re
import subprocess
import sys
from pathlib import Path

SCRIPT = str(Path(__file__).parent / "scripts" / "env_launched.py")
PATIENCE = 120
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]


def output_of(*command: str, **variables: str) -> tuple[int, str]:
    """Returns the exit code of a command and what it prints."""
    ended = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
    )
    return ended.returncode, ended.stdout


def check_done(ended: tuple[int, str], ranks: int) -> None:
    assert ended[0] == 0, ended[1]
    assert sorted(re.findall(r"rank (\d) of \d is done", ended[1])) == [str(rank) for rank in range(ranks)], ended[1]


def test_horovodrun() -> None:
    check_done(output_of("horovodrun", "-np", "3", sys.executable, SCRIPT), 3)


def test_horovodrun_that_encrypts() -> None:
    ended = output_of("horovodrun", "--encrypt-data", "-np", "2", sys.executable, SCRIPT, HOROVOD_SHARED_MEMORY="0")
    check_done(ended, 2)


def test_torchrun() -> None:
    check_done(output_of(*TORCHRUN, SCRIPT), 2)


def test_encryption_without_a_job_is_refused() -> None:
    code, output = output_of(*TORCHRUN, SCRIPT, HOROVOD_ENCRYPT_DATA="1")
    assert code != 0
    assert "start the script by horovodrun --encrypt-data" in output, output
