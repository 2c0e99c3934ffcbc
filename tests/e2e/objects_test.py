"""Objects that are unpickled where they arrive: what was changed on the way never is."""

from pathlib import Path

import pytest

JOBS = Path(__file__).resolve().parent / "jobs"


@pytest.mark.parametrize("operation", ["broadcast", "allgather"])
def test_changed_object_ends_the_world_and_is_not_unpickled(horovodrun, operation):
    result = horovodrun.run("-np", "2", "python3", JOBS / "changed_object.py", operation)
    ended = [line for line in result.stdout.splitlines() if "ended:" in line]
    assert len(ended) == 2, result.stdout + result.stderr
    sender = 0 if operation == "broadcast" else 1  # whose byte was hit
    text = f"the object that came for '{operation} {operation}_object' is not what rank {sender} has sent: it was changed on the way"
    assert text in next(line for line in ended if line.startswith("[1]")), ended
    assert "it was unpickled" not in result.stderr
