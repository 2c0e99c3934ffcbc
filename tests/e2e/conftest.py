"""Fixtures of the tests that run horovodrun on this machine. What must leave nothing behind is tested in tests/cluster, where a whole host can be
seen."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))

from launcher import Launcher
from processes import pids_with, wait_until_none

_MARK = "LAUNCHED_TEST"


@pytest.fixture
def horovodrun(tmp_path):
    launcher = Launcher(tmp_path)
    yield launcher
    launcher.close()


@pytest.fixture
def launch(tmp_path):
    """Runs a command whose temporary directory is the test's, and returns its result. At the end of the test nothing of it is left."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()

    def run(*command, **environment):
        own = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
        own.update({"OMP_NUM_THREADS": "1", "TMPDIR": str(temporary), _MARK: str(tmp_path), **environment})
        words = [str(word) for word in command]
        return subprocess.run(words, env=own, capture_output=True, text=True, timeout=120, start_new_session=True)

    yield run
    assert wait_until_none(lambda: pids_with(f"{_MARK}={tmp_path}\0".encode())) == []
    assert list(temporary.glob("horovod-*/*")) == []
