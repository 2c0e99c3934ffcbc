"""horovod.run: functions on several ranks, from Python. Needs horovodrun; runs in one process."""

import os
import tempfile

import pytest

import horovod
from horovod.runner import _as_arguments, _handover
from horovod.runner.launch import find_program


def has_launcher():
    try:
        return bool(find_program("horovodrun"))
    except FileNotFoundError:
        return False


needs_launcher = pytest.mark.skipif(not has_launcher(), reason="there is no horovodrun")


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path, monkeypatch):
    """Nothing may be left behind in it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert os.listdir(str(tmp_path)) == []


@needs_launcher
def test_results_are_in_rank_order():
    offset = 100

    def function(factor, plus=0):
        import torch

        import horovod.torch as hvd

        hvd.init()
        total = hvd.allreduce(torch.tensor([hvd.rank()]), op=hvd.Sum).item()
        return hvd.rank() * factor + plus + offset, total

    assert horovod.run(function, (10,), {"plus": 1}, num_proc=2) == [(101, 1), (111, 1)]


@needs_launcher
def test_function_may_shut_down():
    def function():
        import horovod.torch as hvd

        hvd.init()
        rank = hvd.rank()
        hvd.shutdown()
        return rank

    assert horovod.run(function, num_proc=2, hosts="localhost:2") == [0, 1]


@needs_launcher
def test_exception_reaches_the_caller():
    def function():
        import torch

        import horovod.torch as hvd

        hvd.init()
        if hvd.rank() == 1:
            raise KeyError("the cause")
        hvd.allreduce(torch.ones(1))

    with pytest.raises(RuntimeError) as caught:
        horovod.run(function, num_proc=2)
    text = str(caught.value)
    assert "Horovod detected that one or more processes exited with non-zero status" in text
    assert "Rank 1 raised" in text and "KeyError: 'the cause'" in text


def test_contradictions_fail():
    for kwargs in (
        dict(hosts="a:1", hostfile="b"),
        dict(use_mpi=True, use_gloo=True),
        dict(use_mpi=True),
        dict(num_proc=2, np=2),
    ):
        with pytest.raises(ValueError):
            horovod.run(print, **kwargs)


def test_flags():
    flags = {"-np": 2, "-H": None, "--blacklist-cooldown-range": (1, 2)}
    assert _as_arguments(flags) == ["-np", "2", "--blacklist-cooldown-range", "1", "2"]


def test_only_private_folders_are_read():
    with tempfile.TemporaryDirectory() as folder:
        _handover.put_function(folder, lambda: 5)
        assert _handover.get_function(folder)() == 5
        os.chmod(folder, 0o755)
        for read in (_handover.get_function, _handover.results):
            with pytest.raises(PermissionError):
                read(folder)


def test_causes_come_before_consequences():
    with tempfile.TemporaryDirectory() as folder:
        _handover.put_failure(folder, 0, RuntimeError("peer is gone"), True)
        _handover.put_failure(folder, 1, ValueError("cause"), False)
        assert [failure.rank for failure in _handover.failures(folder)] == [1, 0]
