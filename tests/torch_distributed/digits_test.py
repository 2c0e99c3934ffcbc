"""The examples of torch.distributed, by the commands of examples/README.md and by torchrun. They need torch 2.6 or newer."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
COMMANDS = re.findall(r"`(horovodrun -np .* examples/torch_.*)`", (REPOSITORY / "examples/README.md").read_text())
PATIENCE = 240  # seconds


def accuracy_of(command: str) -> float:
    """Runs the command with this Python and returns the last accuracy, in percent."""
    words = [sys.executable if word == "python" else word for word in shlex.split(command)]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    return float(re.findall(r"epoch \d: \w+ accuracy ([\d.]+)%", done.stdout)[-1])


def test_every_script_has_its_command() -> None:
    assert len(COMMANDS) == len(list(REPOSITORY.glob("examples/torch_*.py"))) == 6


@pytest.mark.parametrize("command", COMMANDS)
def test_example(command: str) -> None:
    assert accuracy_of(command) > 85


def test_stages_and_other_data() -> None:
    assert accuracy_of("horovodrun -np 4 python examples/torch_parallel_digits.py --tensor 1") > 85


def test_sharded_training_continues_from_its_checkpoint(tmp_path: Path) -> None:
    command = f"horovodrun -np 2 python examples/torch_fsdp_digits.py --epochs 1 --checkpoint {tmp_path}/kept"
    accuracies = [accuracy_of(command) for _ in range(3)]
    assert accuracies[2] > accuracies[0] and accuracies[2] > 93, accuracies


def test_under_torchrun() -> None:
    assert (
        accuracy_of("python -m torch.distributed.run --standalone --nproc-per-node 2 examples/torch_ddp_digits.py") > 85
    )
