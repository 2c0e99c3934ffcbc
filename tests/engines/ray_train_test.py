"""Ray Train with horovod.ray.train."""

import os
import sys
import traceback

import pytest
import ray
import ray.cloudpickle
from ray.train import RunConfig, ScalingConfig

from horovod.ray.train import HorovodConfig, HorovodTrainer
from processes import command_line, pids_with, wait_until_none

ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers can't import this module
STORE = 100 * 2**20  # bytes, of objects
MARK = f"RAY_TRAIN_TEST={os.getpid()}"


@pytest.fixture(scope="module", autouse=True)
def cluster(ray_folder):
    name, value = MARK.split("=")
    os.environ[name] = value
    ray.init(num_cpus=4, include_dashboard=False, object_store_memory=STORE, _temp_dir=ray_folder)
    yield
    ray.shutdown()
    del os.environ[name]
    assert wait_until_none(lambda: [pid for pid in pids_with(MARK.encode() + b"\0") if pid != os.getpid()]) == []


@pytest.fixture
def fit(tmp_path):
    def fit(train):
        train_config = {"folder": str(tmp_path / "said")}
        (tmp_path / "said").mkdir()
        trainer = HorovodTrainer(
            train,
            train_loop_config=train_config,
            horovod_config=HorovodConfig(timeout_s=60),
            scaling_config=ScalingConfig(num_workers=2),
            run_config=RunConfig(storage_path=str(tmp_path / "storage")),
        )
        try:
            trainer.fit()
        finally:
            assert wait_until_none(programs_of_jobs) == []
        return {path.name: path.read_text() for path in (tmp_path / "said").iterdir()}

    return fit


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: HorovodConfig(nics=3), "nics must be a list of names of network interfaces: Got 3"),
        (lambda: HorovodConfig(verbose="2"), "verbose must be a whole number: Got '2'"),
        (lambda: HorovodConfig(timeout_s="9"), "timeout_s must be a number of seconds: Got '9'"),
        (lambda: HorovodTrainer(3), "train_loop_per_worker must be a function: Got 3"),
        (lambda: HorovodTrainer(print, horovod_config={}), "horovod_config must be a HorovodConfig: Got {}"),
    ],
)
def test_arguments_of_wrong_types_are_one_line(call, message):
    with pytest.raises(TypeError, match=f"^{message}$"):
        call()


def programs_of_jobs():
    return [pid for pid in pids_with(MARK.encode() + b"\0") if "bin/horovod-" in command_line(pid)]


def test_ranks_are_those_of_ray_train(fit):
    def train(config):
        import numpy

        import horovod.numpy as hvd

        hvd.init()
        total = hvd.allreduce(numpy.full(1, 1.0), op=hvd.Sum)[0]
        rank = ray.train.get_context().get_world_rank()
        with open(os.path.join(config["folder"], str(hvd.rank())), "w") as file:
            file.write(f"{rank} {hvd.local_rank()} {hvd.size()} {total:g}")

    assert fit(train) == {"0": "0 0 2 2", "1": "1 1 2 2"}


def test_error_of_one_worker_ends_the_training(fit):
    def train(config):
        import numpy

        import horovod.numpy as hvd

        hvd.init()
        if hvd.rank() == 1:
            raise KeyError("on purpose")
        hvd.allreduce(numpy.ones(1))

    with pytest.raises(Exception) as caught:  # each version of Ray Train has its own
        fit(train)
    assert "KeyError: 'on purpose'" in "".join(traceback.format_exception(None, caught.value, None))
