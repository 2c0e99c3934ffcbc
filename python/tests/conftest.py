"""Every test runs on all ranks, in the same order: see run_ranks.py."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

import agents_store
from horovod.common import basics
from horovod.common.process_sets import barrier
from horovod.elastic.runs import runs


def hide_folders():
    """Makes `import jax` fail if JAX is not installed: it would find the folder of JAX's tests, which is beside this
    file, and some packages use JAX if they find it."""
    for folder in Path(__file__).parent.iterdir():
        found = importlib.util.find_spec(folder.name) if folder.is_dir() and folder.name.isidentifier() else None
        if found is not None and found.origin is None:  # no module, only a folder
            sys.modules[folder.name] = None


hide_folders()


def torch_in_use():
    """The module, unless these are tests of another framework."""
    return sys.modules.get("torch")


@pytest.fixture(scope="session", autouse=True)
def world():
    # Timelines can be started only if this is set at init.
    os.environ["HOROVOD_TIMELINE"] = "DYNAMIC"
    basics.init()
    if torch_in_use():
        torch_in_use().set_num_threads(1)
    yield
    basics.shutdown()


@pytest.fixture(autouse=True)
def in_step(request):
    """Ranks begin each test together, with the same random numbers, and as if they had begun no run."""
    if "several_ranks" in request.keywords and basics.size() == 1:
        pytest.skip("needs several ranks")
    barrier()
    runs.forget()
    if torch_in_use():
        torch_in_use().manual_seed(1234)
    yield


@pytest.fixture
def store(monkeypatch):
    """Memory for commits that outlive this process, as an agent has it."""
    return agents_store.install(monkeypatch)


def pytest_configure(config):
    config.addinivalue_line("markers", "several_ranks: makes no sense in a world of one")
