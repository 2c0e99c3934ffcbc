"""The network caps each connection: large messages use several."""

from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent / "scripts/large_sums.py"
BYTES_PER_SECOND = 5_000_000


@pytest.mark.parametrize("flags", [(), ("--encrypt-data",)])
def test_large_messages_use_several_connections(cluster, tmp_path, flags):
    pace = {"pace": BYTES_PER_SECOND}
    cluster["a"].set_link(from_host=pace, to_host=pace)
    timeline = tmp_path / "timeline.json"
    command = ["horovodrun", *flags, "--log-level", "INFO", "--timeline-filename", timeline]
    job = cluster["launcher"].start_command([*command, "-np", "2", "-H", "a:1,b:1", "python", SCRIPT, "8"])
    assert job.wait(120) == 0, job.stderr.text
    assert "right" in job.stdout.text
    for rank in (0, 1):
        choice = f"uses 8 connections to rank {1 - rank} for large messages: from 0.1 Gbit/s to "
        assert choice in job.stderr.text, job.stderr.text
    assert "uses 8 connections to rank 1" in timeline.read_text()
