"""Every test runs on all ranks, in the same order: see run_ranks.py."""

import os

import pytest
import torch

import agents_store
import horovod.torch as hvd


@pytest.fixture(scope="session", autouse=True)
def world():
    # Timelines can be started only if this is set at init.
    os.environ["HOROVOD_TIMELINE"] = "DYNAMIC"
    hvd.init()
    torch.set_num_threads(1)
    yield
    hvd.shutdown()


@pytest.fixture(autouse=True)
def in_step(request):
    """Ranks begin each test together, with the same random numbers."""
    if "several_ranks" in request.keywords and hvd.size() == 1:
        pytest.skip("needs several ranks")
    hvd.barrier()
    torch.manual_seed(1234)
    yield


@pytest.fixture
def store(monkeypatch):
    """Memory for commits that outlive this process, as an agent has it."""
    return agents_store.install(monkeypatch)


def pytest_configure(config):
    config.addinivalue_line("markers", "several_ranks: makes no sense in a world of one")
