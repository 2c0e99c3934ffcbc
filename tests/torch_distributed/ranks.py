"""Starts the ranks of a script of torch.distributed as plain processes, without a launcher.

They are forked from this process, which has imported what takes seconds.
"""

import atexit
import os
import runpy
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import Optional

import torch

import horovod.torch.distributed  # noqa: F401

SCRIPTS = Path(__file__).parent / "scripts"
PATIENCE = 120  # seconds; the ranks of a test end long before

torch.set_num_threads(1)  # a child can't use the threads of its parent


class Rank:
    """How a rank has ended: its exit code, or minus its signal; and what it has printed."""

    def __init__(self, code: int, output: str) -> None:
        self.code = code
        self.output = output

    def __repr__(self) -> str:
        return f"exit code {self.code}\n{self.output}"


def run(
    folder: Path, script: str, ranks: int, *arguments: str, variables: Optional[dict[str, str]] = None
) -> list[Rank]:
    """Runs scripts/SCRIPT on so many ranks, which meet at a file in `folder`, and returns how they ended."""
    number = len(list(folder.iterdir()))
    outputs = [folder / f"output-{number}-{rank}" for rank in range(ranks)]
    processes = []
    for rank, output in enumerate(outputs):
        process = os.fork()
        if process == 0:
            _be_rank(
                script, [f"file://{folder}/store-{number}", str(rank), str(ranks), *arguments], output, variables or {}
            )
        processes.append(process)
    guard = threading.Timer(PATIENCE, lambda: [os.kill(process, signal.SIGKILL) for process in processes])
    guard.start()
    try:
        codes = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes]
    finally:
        guard.cancel()
    return [Rank(code, output.read_text()) for code, output in zip(codes, outputs)]


def _be_rank(script: str, arguments: list[str], output: Path, variables: dict[str, str]) -> None:
    """Runs the script in this process, as Python would, and ends the process."""
    code = 1
    try:
        file = os.open(output, os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(file, 1)
        os.dup2(file, 2)
        # Not pytest's, which capture.
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        os.environ.update(variables)
        sys.argv = [script, *arguments]
        sys.path.insert(0, str(SCRIPTS))
        runpy.run_path(str(SCRIPTS / script), run_name="__main__")
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
