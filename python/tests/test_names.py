"""The names that scripts for Horovod import, and the arguments that they give. On any number of
ranks."""

import importlib
import inspect

import pytest
import torch

import horovod.torch as hvd
from horovod.common.util import extension_available, gpu_available
from horovod.torch import mpi_ops

EXPORTED = [
    "elastic",
    "Compression",
    "allgather_object",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "allreduce",
    "allreduce_async",
    "allreduce_",
    "allreduce_async_",
    "grouped_allreduce",
    "grouped_allreduce_async",
    "grouped_allreduce_",
    "grouped_allreduce_async_",
    "sparse_allreduce_async",
    "allgather",
    "allgather_async",
    "grouped_allgather",
    "grouped_allgather_async",
    "broadcast",
    "broadcast_async",
    "broadcast_",
    "broadcast_async_",
    "alltoall",
    "alltoall_async",
    "reducescatter",
    "reducescatter_async",
    "grouped_reducescatter",
    "grouped_reducescatter_async",
    "join",
    "barrier",
    "poll",
    "synchronize",
    "init",
    "shutdown",
    "is_initialized",
    "start_timeline",
    "stop_timeline",
    "size",
    "local_size",
    "cross_size",
    "rank",
    "local_rank",
    "cross_rank",
    "mpi_threads_supported",
    "mpi_enabled",
    "mpi_built",
    "gloo_enabled",
    "gloo_built",
    "nccl_built",
    "ddl_built",
    "ccl_built",
    "cuda_built",
    "rocm_built",
    "ProcessSet",
    "global_process_set",
    "add_process_set",
    "remove_process_set",
    "Average",
    "Sum",
    "Adasum",
    "Min",
    "Max",
    "Product",
    "HorovodInternalError",
    "DistributedOptimizer",
    "SyncBatchNorm",
    "_check_has_gpu",
    "grouped_broadcast",
    "grouped_broadcast_async",
    "grouped_broadcast_",
    "grouped_broadcast_async_",
    "grouped_alltoall",
    "grouped_alltoall_async",
]

MODULES = {
    "horovod": ["run"],
    "horovod.torch.mpi_ops": [
        *("synchronize", "rank", "is_homogeneous", "poll", "allreduce_async_", "Compression"),
        *("ProcessSet", "global_process_set", "add_process_set", "remove_process_set"),
        "handle_average_backwards_compatibility",
    ],
    "horovod.torch.functions": ["broadcast_parameters", "broadcast_object", "allgather_object", "allgather"],
    "horovod.torch.optimizer": ["DistributedOptimizer"],
    "horovod.torch.compression": ["Compression", "Compressor", "NoneCompressor", "FP16Compressor"],
    "horovod.torch.sync_batch_norm": ["SyncBatchNorm"],
    "horovod.torch.elastic": ["run", "TorchState", "ElasticSampler", "ObjectState", "State", "init", "shutdown"],
    "horovod.torch.elastic.state": [
        "TorchState",
        "StateHandler",
        "ModelStateHandler",
        "OptimizerStateHandler",
        "SamplerStateHandler",
        "get_handler_registry",
        "set_handler_registry",
    ],
    "horovod.torch.elastic.sampler": ["ElasticSampler"],
    "horovod.common.exceptions": [
        "HorovodInternalError",
        "HostsUpdatedInterrupt",
        "HorovodVersionMismatchError",
    ],
    "horovod.common.elastic": ["State", "ObjectState", "run_fn", "notification_manager", "HorovodInternalError"],
    "horovod.common.util": [
        "gloo_built",
        "mpi_built",
        "nccl_built",
        "split_list",
        "gpu_available",
        "extension_available",
    ],
    "horovod.common.process_sets": ["ProcessSet", "global_process_set", "add_process_set"],
    "horovod.runner": ["run", "_HorovodArgs"],
    "horovod.runner.launch": ["_run", "run_commandline"],
}

ALL = hvd.global_process_set
NONE = hvd.Compression.none
FACTORS = dict(prescale_factor=1.0, postscale_factor=1.0)
REDUCED = dict(average=None, name=None, op=None, **FACTORS, process_set=ALL)
COMPRESSED = dict(average=None, name=None, compression=NONE, op=None, **FACTORS, process_set=ALL)
GATHERED = dict(name=None, process_set=ALL)
SCATTERED = dict(name=None, op=hvd.Average, process_set=ALL, **FACTORS)
COMPRESSED_SCATTERED = dict(name=None, compression=NONE, op=hvd.Average, process_set=ALL, **FACTORS)
# Arguments in their order, with their defaults; the first ones have none.
SIGNATURES = {
    "allreduce": (["tensor"], COMPRESSED),
    "allreduce_async": (["tensor"], REDUCED),
    "allreduce_": (["tensor"], REDUCED),
    "allreduce_async_": (["tensor"], REDUCED),
    "grouped_allreduce": (["tensors"], COMPRESSED),
    "grouped_allreduce_async": (["tensors"], REDUCED),
    "grouped_allreduce_": (["tensors"], REDUCED),
    "grouped_allreduce_async_": (["tensors"], REDUCED),
    "sparse_allreduce_async": (["tensor", "name", "op"], dict(process_set=ALL)),
    "allgather": (["tensor"], GATHERED),
    "allgather_async": (["tensor"], GATHERED),
    "grouped_allgather": (["tensors"], GATHERED),
    "grouped_allgather_async": (["tensors"], GATHERED),
    "broadcast": (["tensor", "root_rank"], GATHERED),
    "broadcast_async": (["tensor", "root_rank"], GATHERED),
    "broadcast_": (["tensor", "root_rank"], GATHERED),
    "broadcast_async_": (["tensor", "root_rank"], GATHERED),
    "alltoall": (["tensor"], dict(splits=None, **GATHERED)),
    "alltoall_async": (["tensor"], dict(splits=None, **GATHERED)),
    "reducescatter": (["tensor"], COMPRESSED_SCATTERED),
    "reducescatter_async": (["tensor"], SCATTERED),
    "grouped_reducescatter": (["tensors"], COMPRESSED_SCATTERED),
    "grouped_reducescatter_async": (["tensors"], SCATTERED),
    "poll": (["handle"], {}),
    "synchronize": (["handle"], {}),
    "join": ([], dict(device=-1)),
    "barrier": ([], dict(process_set=ALL)),
    "init": ([], dict(comm=None, process_sets=None)),
    "broadcast_object": ([], dict(obj=None, root_rank=0, name=None, process_set=ALL)),
    "allgather_object": (["obj"], GATHERED),
    "broadcast_parameters": (["params", "root_rank"], dict(process_set=ALL)),
    "broadcast_optimizer_state": (["optimizer", "root_rank"], dict(model=None, process_set=ALL)),
    "start_timeline": (["file_path"], dict(mark_cycles=False)),
}


def test_exported_names():
    assert [name for name in EXPORTED if not hasattr(hvd, name)] == []


@pytest.mark.parametrize("module", sorted(MODULES))
def test_modules_and_what_is_in_them(module):
    found = importlib.import_module(module)
    assert [name for name in MODULES[module] if not hasattr(found, name)] == []


def test_names_of_inner_modules_are_the_public_ones():
    assert mpi_ops.ProcessSet is hvd.ProcessSet and mpi_ops.Compression is hvd.Compression
    assert hvd.functions.allgather is hvd.allgather
    assert (hvd.elastic.init, hvd.elastic.shutdown) == (hvd.init, hvd.shutdown)
    reduction = mpi_ops.handle_average_backwards_compatibility
    assert (reduction(hvd.Sum, None), reduction(None, None)) == (hvd.Sum, hvd.Average)
    with pytest.warns(DeprecationWarning):
        assert reduction(None, False) == hvd.Sum


@pytest.mark.parametrize(
    "module, name",
    [
        ("horovod.torch.optimizer", "_DistributedOptimizer"),
        ("horovod.torch.optimizer", "_DistributedAdasumOptimizer"),
        ("horovod.torch", "mpi_lib_v2"),
        ("horovod.torch.mpi_ops", "mpi_lib"),
        ("horovod.torch.mpi_ops", "check_installed_version"),
        ("horovod.common.basics", "HorovodBasics"),
        ("horovod.common.util", "check_installed_version"),
        ("horovod.common.util", "get_ext_suffix"),
        ("horovod.common.util", "get_extension_full_path"),
        ("horovod.common.util", "EXTENSIONS"),
        ("horovod.common.exceptions", "get_version_mismatch_message"),
        ("horovod.runner.common.util.hosts", "INVALID_SLOT_INFO"),
        ("horovod.runner.common.util.hosts", "parse_hosts_and_slots"),
    ],
)
def test_names_that_are_not_there(module, name):
    """As docs/compatibility.md says."""
    with pytest.raises(ImportError):
        exec(f"from {module} import {name}")


def test_frameworks_of_this_package():
    assert [name for name in ("tensorflow", "torch", "mxnet") if extension_available(name)] == ["torch"]
    assert gpu_available("torch") == hvd.cuda_built() and not gpu_available("tensorflow")


@pytest.mark.parametrize("function", sorted(SIGNATURES))
def test_signatures(function):
    first, defaults = SIGNATURES[function]
    parameters = inspect.signature(getattr(hvd, function)).parameters
    assert list(parameters) == first + list(defaults)
    assert {name: parameters[name].default for name in defaults} == defaults
    assert all(parameters[name].default is inspect.Parameter.empty for name in first)


def test_states_and_samplers():
    sampler = hvd.elastic.ElasticSampler(list(range(10)), shuffle=False, seed=3)
    assert (sampler.epoch, sampler.processed_num) == (0, 0)
    assert (sampler.rank, sampler.num_replicas) == (hvd.rank(), hvd.size())
    assert sampler.remaining_indices == list(range(10)) and sampler.seed == 3
    sampler.reset()
    state = hvd.elastic.TorchState(torch.nn.Linear(1, 1), sampler=sampler, epoch=1)
    for method in [
        "register_reset_callbacks",
        "commit",
        "check_host_updates",
        "save",
        "restore",
        "sync",
        "reset",
        "on_reset",
        "on_hosts_updated",
    ]:
        assert callable(getattr(state, method))
    assert state.epoch == 1 and state.sampler is sampler
