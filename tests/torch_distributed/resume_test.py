"""A rank of Accelerate or Transformers' Trainer is killed, under launchers that start all ranks again: the training goes on from its checkpoint."""

import os
import re
import signal
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
sys.path.append(str(REPOSITORY / "tests/support"))

from processes import Running, command_line, environment_of, pids_with  # noqa: E402

PATIENCE = 120  # seconds
EPOCHS = 60  # more than are done before the kill
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--max-restarts=3"]
LAUNCHERS = {
    "horovodrun": ["horovodrun", "--elastic-restart", "-np", "2", "--min-np", "1", sys.executable],
    "torchrun with Horovod's daemon": [*TORCHRUN, "--rdzv-backend=horovod"],
    "torchrun": [*TORCHRUN, "--standalone"],
}
PLUG_IN = "[torchrun.handlers]\nhorovod = horovod.torchrun:get_handler\n"


def pid_of_rank(rank: int, script: str, mark: str) -> int:
    """The process of the rank, by the variables of the test and of the launcher."""
    return next(
        pid
        for pid in pids_with(mark.encode() + b"\0")
        if f"\0RANK={rank}\0".encode() in environment_of(pid) and script in command_line(pid)
    )


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("example", ["accelerate", "trainer"])
def test_training_goes_on_from_its_checkpoint(tmp_path: Path, example: str, launcher: str) -> None:
    pytest.importorskip("transformers" if example == "trainer" else example)
    installed = tmp_path / "horovod-0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: horovod\nVersion: 0\n")
    (installed / "entry_points.txt").write_text(PLUG_IN)
    script = f"examples/torch_{example}_digits.py"
    mark = f"RESUME_TEST={tmp_path}"
    variables = {
        **os.environ,
        "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{tmp_path}",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "RESUME_TEST": str(tmp_path),
    }
    command = [*LAUNCHERS[launcher], script, f"--epochs={EPOCHS}", f"--checkpoints={tmp_path}/checkpoints"]
    job = Running(command, cwd=REPOSITORY, env=variables)
    try:
        job.stdout.wait_for(r"epoch 3: test accuracy", PATIENCE)
        os.kill(pid_of_rank(1, script, mark), signal.SIGKILL)
        assert job.wait(PATIENCE) == 0, job.everything()
    finally:
        job.end()
        for pid in pids_with(mark.encode() + b"\0"):
            os.kill(pid, signal.SIGKILL)
    epochs = [int(epoch) for epoch in re.findall(r"epoch (\d+): test accuracy", job.stdout.text)]
    assert epochs.count(1) == 1 and sorted(set(epochs)) == list(range(1, EPOCHS + 1)), job.everything()
    assert len(epochs) <= EPOCHS + 1, job.everything()  # one whose checkpoint was not complete may come again
