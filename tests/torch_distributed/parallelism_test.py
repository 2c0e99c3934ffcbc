"""torch's own parallelism on the backend hvd: each training gives what it gives over Gloo. It needs torch 2.6 or newer."""

from pathlib import Path

import pytest

from ranks import run


@pytest.mark.parametrize(("script", "ranks"), [("data_parallel.py", 2), ("sharded.py", 2), ("meshes.py", 4)])
def test_as_over_gloo(tmp_path: Path, script: str, ranks: int) -> None:
    ended = run(tmp_path, script, ranks)
    assert [(rank.code, "is equal" in rank.output) for rank in ended] == [(0, True)] * ranks, ended
