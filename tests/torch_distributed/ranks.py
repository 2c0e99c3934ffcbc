"""Starts the ranks of a script of torch.distributed as plain processes, as any launcher does."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Optional

FOLDER = Path(__file__).parent
PATIENCE = 120  # seconds; the ranks of a test end long before


class Rank:
    """What a rank has printed, and its exit code."""

    def __init__(self, code: int, output: str) -> None:
        self.code = code
        self.output = output

    def __repr__(self) -> str:
        return f"exit code {self.code}\n{self.output}"


def run(
    folder: Path, script: str, ranks: int, *arguments: str, variables: Optional[dict[str, str]] = None
) -> list[Rank]:
    """Runs scripts/SCRIPT on so many ranks, which meet at a file in `folder`, and returns how they ended."""
    meeting = folder / f"store-{len(list(folder.iterdir()))}"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **(variables or {})}
    processes = [
        subprocess.Popen(
            [sys.executable, str(FOLDER / "scripts" / script), f"file://{meeting}", str(rank), str(ranks), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        for rank in range(ranks)
    ]
    try:
        outputs = [process.communicate(timeout=PATIENCE)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return [Rank(process.returncode, output) for process, output in zip(processes, outputs)]
