"""Tests that need an NVIDIA GPU, and a torch that can use it; elsewhere they are skipped. tests/gpu/run runs them all.

One GPU serves several ranks: NCCL takes ranks with different NCCL_HOSTIDs for those of different hosts, which may have GPUs of the same
name. What they measure is then NCCL's sockets over loopback, for ours and for the peers alike."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))

from launcher import Launcher


def why_not():
    try:
        import torch
    except ImportError:
        return "torch is not installed"
    if not torch.cuda.is_available():
        return "there is no CUDA device"
    import horovod.torch as hvd

    return None if hvd.nccl_built() else "NCCL can't be loaded"


@pytest.fixture(autouse=True, scope="session")
def gpu():
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def nccl_version():
    """22307 is 2.23.7."""
    import horovod.torch as hvd

    return hvd.nccl_built()


@pytest.fixture
def horovodrun(tmp_path):
    launcher = Launcher(tmp_path)
    yield launcher
    launcher.close()


@pytest.fixture
def job():
    """The path of a script beside the tests."""
    return lambda name: str(Path(__file__).resolve().parent / "jobs" / name)
