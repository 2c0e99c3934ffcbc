"""Fixtures of the tests of frameworks that run horovodrun on this machine: each file runs in the environments that tools/test names."""

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
