"""The network caps each connection: large messages use several."""

import re
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
        # What one connection moved depends on the machine, too: a slow one does not fill it.
        choice = rf"uses 8 connections to rank {1 - rank} for large messages: from (\S+) Gbit/s to (\S+) Gbit/s"
        found = re.search(choice, job.stderr.text)
        assert found, job.stderr.text
        assert float(found[2]) > float(found[1]), found[0]
    assert "uses 8 connections to rank 1" in timeline.read_text()


def test_what_is_changed_on_one_of_several_connections_is_named(cluster):
    pace = {"pace": BYTES_PER_SECOND}
    cluster["a"].set_link(from_host=pace, to_host=pace)
    command = ["horovodrun", "--encrypt-data", "--log-level", "INFO", "-np", "2", "-H", "a:1,b:1", "python", SCRIPT]
    job = cluster["launcher"].start_command([*command, "1000"])
    job.stderr.wait_for("uses 8 connections to rank 0", 120)
    # Nearly all that passes are parts of large messages, on any of the eight.
    cluster["a"].set_link(from_host={**pace, "forge": 3_000_000, "peer": cluster["b"].address}, to_host=pace)
    assert job.wait(60) == 1, job.stderr.text
    # Only its receiver knows this; the other rank has lost a connection.
    assert "rank 0: what it sent was changed on the way (TLS: " in job.stderr.text, job.stderr.text
