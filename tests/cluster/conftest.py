"""Fixtures of the tests with several hosts."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
pytest.register_assert_rewrite("elastic_job", "training_log", "world_checks")

from netns import Cluster  # noqa: E402


@pytest.fixture
def cluster(tmp_path):
    """Two hosts for workers and a third from which jobs are started."""
    with Cluster(["a", "b", "launcher"], tmp_path) as running:
        yield running
