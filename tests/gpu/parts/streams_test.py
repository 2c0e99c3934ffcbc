"""CUDA streams, graphs, and torch's own process group beside operations."""

import pytest


@pytest.mark.parametrize("ranks", [2, 1])
def test_streams(checks, ranks, tmp_path):
    checks("streams.py", ranks, 40, env={"PEER_STORE": str(tmp_path / "store")})
