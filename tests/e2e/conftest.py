"""Fixtures of the tests that run horovodrun on this machine. What must leave nothing behind is tested in tests/cluster, where a whole host can be
seen."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))

from launcher import Launcher


@pytest.fixture
def horovodrun(tmp_path):
    launcher = Launcher(tmp_path)
    yield launcher
    launcher.close()
