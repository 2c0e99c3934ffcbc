"""The backend hvd of torch.distributed in the functions that Spark, Ray and Dask run."""

import contextlib
import os
import sys

import pytest

import horovod.dask
import horovod.spark
from horovod.ray import RayExecutor

RANKS = 2
STORE = 100 * 2**20  # bytes, of Ray's objects


@contextlib.contextmanager
def on_spark(folder, ray_folder):
    from pyspark.sql import SparkSession

    from spark_cluster import QUIET, environment

    os.environ.update(environment())
    builder = SparkSession.builder.master(f"local[{RANKS}]")
    for name, value in QUIET.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield (
        lambda fn, *arguments: horovod.spark.run(fn, arguments, num_proc=RANKS, verbose=0),
        lambda fn, *arguments: horovod.spark.run_elastic(fn, arguments, num_proc=RANKS, min_num_proc=1, verbose=0),
    )
    session.stop()


@contextlib.contextmanager
def on_ray(folder, ray_folder):
    import ray
    import ray.cloudpickle

    def run(fn, *arguments, **limits):
        executor = RayExecutor(RayExecutor.create_settings(timeout_s=60), **limits)
        executor.start()
        try:
            return executor.run(fn, args=arguments)
        finally:
            executor.shutdown()

    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers can't import this module
    ray.init(num_cpus=RANKS, include_dashboard=False, object_store_memory=STORE, _temp_dir=ray_folder)
    yield (
        lambda fn, *arguments: run(fn, *arguments, num_workers=RANKS),
        lambda fn, *arguments: run(fn, *arguments, min_workers=1, max_workers=RANKS),
    )
    ray.shutdown()


@contextlib.contextmanager
def on_dask(folder, ray_folder):
    import distributed

    options = dict(threads_per_worker=1, dashboard_address=None, local_directory=folder)
    with distributed.LocalCluster(n_workers=RANKS, **options) as cluster, distributed.Client(cluster):
        yield (
            lambda fn, *arguments: horovod.dask.run(fn, arguments, verbose=0),
            lambda fn, *arguments: horovod.dask.run_elastic(fn, arguments, min_num_workers=1, verbose=0),
        )


@pytest.fixture(scope="module", params=[on_spark, on_ray, on_dask], ids=["spark", "ray", "dask"])
def engine(request, tmp_path_factory, ray_folder):
    """How it runs a function in a job of fixed size, and in an elastic one."""
    saved = dict(os.environ)
    os.environ["OMP_NUM_THREADS"] = "1"
    with request.param(str(tmp_path_factory.mktemp("engine")), ray_folder) as runs:
        yield runs
    os.environ.clear()
    os.environ.update(saved)


def losses_of_ddp(backend):
    """A training that knows nothing of Horovod but the backend's name: its losses, summed over the ranks."""
    import torch
    import torch.distributed as dist

    import horovod.torch.distributed  # noqa: F401

    dist.init_process_group(backend)
    assert dist.get_backend() == backend and dist.get_world_size() == RANKS
    torch.manual_seed(dist.get_rank())
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.randn(16, 8)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = model(data).square().mean()
        loss.backward()
        optimizer.step()
        total = loss.detach()
        dist.all_reduce(total)
        losses.append(total.item())
    dist.destroy_process_group()
    return losses


def test_static_jobs_train_as_over_gloo(engine):
    static, _ = engine
    wanted = static(losses_of_ddp, "gloo")
    assert len(set(wanted[0])) == 4 and wanted[0] == wanted[1]
    assert static(losses_of_ddp, "hvd") == wanted


def groups_of_worlds(marker):
    """An elastic function with a group in each world; a rank of the first world is killed."""
    import os
    import signal

    import torch
    import torch.distributed as dist

    import horovod.torch as hvd
    import horovod.torch.distributed  # noqa: F401

    hvd.init()

    @hvd.elastic.run
    def sums(state):
        os.environ.update(hvd.torch_distributed_env())
        dist.init_process_group("hvd")
        try:
            total = torch.ones(3)
            dist.all_reduce(total)
            state.sums.append(total.tolist())
            state.commit()
            if hvd.rank() == 1 and not os.path.exists(marker):
                open(marker, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            while len(state.sums) < 2 or hvd.size() < 2:
                hvd.allreduce(torch.ones(1))
                state.commit()
        finally:
            dist.destroy_process_group()
        return state.sums

    return sums(hvd.elastic.ObjectState(sums=[]))


def test_elastic_jobs_have_a_group_in_each_world(engine, tmp_path):
    _, elastic = engine
    results = elastic(groups_of_worlds, str(tmp_path / "killed"))
    assert len(results) == RANKS and results[0] == results[1]
    assert results[0][0] == results[0][-1] == [2.0] * 3 and len(results[0]) in (2, 3), results
