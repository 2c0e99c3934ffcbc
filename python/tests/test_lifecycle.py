"""init, shutdown and what can be asked before, between and after. On any number of ranks."""

import os
import subprocess
import sys
import threading

import pytest
import torch

import horovod.torch as hvd
from horovod.common import _process, util
from horovod.common.exceptions import (
    HorovodInternalError,
    HorovodVersionMismatchError,
    HostsUpdatedInterrupt,
)
from horovod.torch import mpi_ops

QUERIES = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size")


def test_ranks_and_sizes():
    assert 0 <= hvd.rank() < hvd.size()
    assert 0 <= hvd.local_rank() < hvd.local_size() <= hvd.size()
    assert 0 <= hvd.cross_rank() < hvd.cross_size() <= hvd.size()
    assert mpi_ops.is_homogeneous() is True and not hasattr(hvd, "is_homogeneous")
    if hvd.size() > 1:
        for name in ("rank", "size", "local_rank", "local_size"):
            assert int(os.environ["HOROVOD_" + name.upper()]) == getattr(hvd, name)()


def test_what_is_built():
    assert hvd.mpi_built() is False and hvd.mpi_enabled() is False
    assert hvd.gloo_built() is True and hvd.gloo_enabled() is True
    nccl = hvd.nccl_built()
    assert isinstance(nccl, int) and not isinstance(nccl, bool) and nccl >= 0
    assert hvd.ddl_built() is False and hvd.ccl_built() is False
    assert isinstance(hvd.cuda_built(), bool) and isinstance(hvd.rocm_built(), bool)
    assert hvd._check_has_gpu() == hvd.cuda_built()
    assert (util.gloo_built(), util.mpi_built(), util.nccl_built()) == (True, False, nccl)
    with pytest.raises(ValueError, match="built without MPI"):
        hvd.mpi_threads_supported()


def test_constants():
    ops = (hvd.Average, hvd.Sum, hvd.Adasum, hvd.Min, hvd.Max, hvd.Product)
    assert ops == tuple(range(6))


def test_init_again_does_nothing():
    before = _process.process.world
    hvd.init()
    hvd.init(process_sets=[])
    hvd.init(comm=list(range(hvd.size())))
    hvd.init(comm=set(range(hvd.size())))
    assert _process.process.world is before and hvd.is_initialized()


def test_bad_arguments_of_init():
    with pytest.raises(ValueError, match=r"list of hvd\.ProcessSet"):
        hvd.init(process_sets=[[0]])
    with pytest.raises(ValueError, match="dynamic"):
        hvd.init(process_sets="static")
    with pytest.raises(ValueError, match="without MPI"):
        hvd.init(comm=object())
    assert hvd.is_initialized()


def test_a_subset_of_the_ranks_is_refused():
    hvd.shutdown()
    try:
        with pytest.raises(ValueError, match="a subset of the ranks is not supported"):
            hvd.init(comm=[99])  # no world of these tests is so large
    finally:
        hvd.init()
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == hvd.size()


COLLECTIVES = {
    "allreduce": lambda: hvd.allreduce(torch.ones(2)),
    "grouped_allreduce": lambda: hvd.grouped_allreduce([torch.ones(2)]),
    "sparse_allreduce_async": lambda: hvd.sparse_allreduce_async(torch.eye(2).to_sparse(), "s", hvd.Sum),
    "allgather": lambda: hvd.allgather(torch.ones(2)),
    "grouped_allgather": lambda: hvd.grouped_allgather([torch.ones(2)]),
    "broadcast": lambda: hvd.broadcast(torch.ones(2), 0),
    "grouped_broadcast": lambda: hvd.grouped_broadcast([torch.ones(2)], 0),
    "alltoall": lambda: hvd.alltoall(torch.ones(2)),
    "grouped_alltoall": lambda: hvd.grouped_alltoall([torch.ones(2)]),
    "reducescatter": lambda: hvd.reducescatter(torch.ones(2)),
    "grouped_reducescatter": lambda: hvd.grouped_reducescatter([torch.ones(2)]),
    "join": hvd.join,
    "barrier": hvd.barrier,
    "broadcast_object": lambda: hvd.broadcast_object(1),
    "allgather_object": lambda: hvd.allgather_object(1),
    "broadcast_parameters": lambda: hvd.broadcast_parameters([torch.ones(1)], 0),
}


def test_before_init_everything_says_so():
    """The errors are the same before the first init and after a shutdown."""
    text = r"Horovod has not been initialized: call hvd.init\(\) first"
    hvd.shutdown()
    try:
        assert not hvd.is_initialized() and not hvd.global_process_set.included()
        assert hvd.global_process_set.ranks == []
        for name in QUERIES:
            with pytest.raises(ValueError, match=text):
                getattr(hvd, name)()
        for call in (
            mpi_ops.is_homogeneous,
            lambda: hvd.start_timeline("x"),
            hvd.stop_timeline,
            lambda: hvd.add_process_set([0]),
        ):
            with pytest.raises(ValueError, match=text):
                call()
        for call in COLLECTIVES.values():
            with pytest.raises(HorovodInternalError, match=text):
                call()
        hvd.shutdown()  # once more does nothing
        assert hvd.gloo_built() and not hvd.mpi_built()  # these can be asked any time
    finally:
        hvd.init()


def test_a_hundred_worlds_in_one_process():
    threads = threading.active_count()
    files = len(os.listdir("/proc/self/fd"))
    for i in range(100):
        hvd.shutdown()
        hvd.init()
        if i % 10 == 0:
            assert hvd.allreduce(torch.ones(2), op=hvd.Sum).tolist() == [hvd.size()] * 2
    assert threading.active_count() == threads
    # Of the last world some may not be closed yet; of those before nothing is left.
    assert len(os.listdir("/proc/self/fd")) < files + 50


def test_handles_of_a_world_that_is_gone():
    handle = hvd.allreduce_async(torch.ones(2))
    hvd.synchronize(handle)
    hvd.shutdown()
    hvd.init()
    assert hvd.synchronize(handle) is None
    with pytest.raises(ValueError, match="was not created or has been cleared"):
        hvd.poll(handle)


def test_exceptions():
    assert issubclass(HorovodInternalError, RuntimeError)
    assert hvd.HorovodInternalError is HorovodInternalError
    assert issubclass(HostsUpdatedInterrupt, RuntimeError)
    assert HostsUpdatedInterrupt(True).skip_sync is True
    assert HostsUpdatedInterrupt(skip_sync=False).skip_sync is False
    error = HorovodVersionMismatchError("torch", "1.13", "2.0")
    assert isinstance(error, ImportError)
    assert (error.name, error.version, error.installed_version) == ("torch", "1.13", "2.0")


INIT_TWICE = """
import os, sys
import horovod.torch as hvd
name, value, error = sys.argv[1:]
os.environ[name] = value
try:
    hvd.init()
except Exception as caught:
    assert type(caught).__name__ == error, repr(caught)
    assert name in str(caught), caught
else:
    sys.exit("it worked")
assert not hvd.is_initialized()
del os.environ[name]
hvd.init()
assert hvd.size() == 1
"""


@pytest.mark.parametrize(
    "name, value, error",
    [
        ("HOROVOD_AGENT_SOCKET", "nobody-listens-here", "HorovodInternalError"),
        ("HOROVOD_CYCLE_TIME", "soon", "ValueError"),
    ],
)
def test_init_that_fails_is_an_exception_and_can_be_tried_again(name, value, error):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HOROVOD_")}
    command = [sys.executable, "-c", INIT_TWICE, name, value, error]
    subprocess.run(command, env=environment, check=True, timeout=60)
