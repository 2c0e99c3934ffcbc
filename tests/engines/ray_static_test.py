"""horovod.ray with jobs of fixed size, on a cluster of one node with four CPUs and two make-believe GPUs."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import ray
import ray.cloudpickle
from ray.experimental import internal_kv
from ray.util.placement_group import get_current_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from engine_output import check_order_of
from horovod.ray import BaseHorovodWorker, RayExecutor
from horovod.ray.strategy import create_placement_group
from horovod.runner._adoption import Refused
from processes import command_line, environment_of, is_alive, pids_with, wait_until_none

# Four workers close to one another, or four on one node.
SHAPES = [dict(num_workers=4, num_hosts=None, num_workers_per_host=None), dict(num_hosts=1, num_workers_per_host=4)]
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers can't import this module
STORE = 100 * 2**20  # bytes, of objects
JOBS = Path(__file__).resolve().parent / "jobs"
MARK = f"RAY_STATIC_TEST={os.getpid()}"


@pytest.fixture(scope="module", autouse=True)
def cluster(ray_folder):
    name, value = MARK.split("=")
    os.environ[name] = value
    ray.init(num_cpus=4, num_gpus=2, include_dashboard=False, object_store_memory=STORE, _temp_dir=ray_folder)
    yield
    ray.shutdown()
    del os.environ[name]
    assert wait_until_none(lambda: [pid for pid in pids_with(MARK.encode() + b"\0") if pid != os.getpid()]) == []


@pytest.fixture
def make():
    """Makes executors, which are shut down at the end; nothing of their jobs must be left then."""
    made = []

    def make(**arguments):
        settings = RayExecutor.create_settings(timeout_s=60, placement_group_timeout_s=30)
        made.append(RayExecutor(settings, **arguments))
        return made[-1]

    yield make
    for executor in made:
        executor.shutdown()
    assert wait_until_none(programs_of_jobs) == []


def programs_of_jobs():
    return [pid for pid in pids_with(MARK.encode() + b"\0") if "bin/horovod-" in command_line(pid)]


def place(*_):
    import horovod.numpy as hvd

    hvd.init()
    return hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), os.getpid()


def add_up(number=1):
    import numpy

    import horovod.numpy as hvd

    hvd.init()
    return float(hvd.allreduce(numpy.full(3, number), op=hvd.Sum)[0])


@pytest.mark.parametrize("shape", SHAPES)
def test_workers_are_one_world_in_the_order_of_ranks(make, shape):
    executor = make(**shape)
    executor.start(extra_env_vars={"RAY_TEST": 5})
    places = executor.run(place)
    assert [found[:4] for found in places] == [(rank, 4, rank, 4) for rank in range(4)]
    assert executor.execute(place) == places, "a second run is in the same processes"
    assert executor.run(add_up, args=[2]) == executor.run(add_up, kwargs={"number": 2}) == [8] * 4
    assert ray.get(executor.run_remote(add_up, args=[3])) == [12] * 4
    assert executor.execute_single(place) == places[0]
    environment = executor.execute(lambda _: (os.environ["HOROVOD_HOSTNAME"], os.environ["RAY_TEST"]))
    assert environment == [(socket.gethostname(), "5")] * 4


@pytest.mark.parametrize("shape", SHAPES)
def test_executable_lives_on(make, shape):
    class Counter:
        def __init__(self, step):
            import horovod.numpy as hvd

            hvd.init()
            self.hvd, self.step, self.calls = hvd, step, 0

        def count(self):
            self.calls += 1
            return self.hvd.rank() * self.step, self.calls

    executor = make(**shape)
    executor.start(executable_cls=Counter, executable_args=[2])
    assert executor.execute(lambda counter: counter.count()) == [(0, 1), (2, 1), (4, 1), (6, 1)]
    assert executor.execute(lambda counter: counter.count()) == [(0, 2), (2, 2), (4, 2), (6, 2)]


def test_modules_are_searched_as_the_caller_does(make, tmp_path, monkeypatch):
    (tmp_path / "only_the_caller_has_it.py").write_text("VALUE = 42\n")
    monkeypatch.setattr(sys, "path", [*sys.path[:1], str(tmp_path), *sys.path[1:]])

    def seen():
        import only_the_caller_has_it

        return only_the_caller_has_it.VALUE, sys.path

    executor = make(num_workers=1)
    executor.start()
    ((value, paths),) = executor.run(seen)
    check_order_of(paths)
    assert value == 42


def test_torch_training(make):
    def train():
        import torch

        import horovod.torch as hvd

        hvd.init()
        torch.manual_seed(hvd.rank())
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        for _ in range(10):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(torch.randn(8, 2)), torch.zeros(8, 2)).backward()
            optimizer.step()
        return [parameter.tolist() for parameter in model.parameters()]

    executor = make(num_workers=2)
    executor.start()
    first, second = executor.run(train)
    assert first == second


def test_current_placement_group_is_used(make):
    group, bundles = create_placement_group({"CPU": 1}, 3, 30, "PACK")
    assert bundles == [{"CPU": 1}] * 3

    @ray.remote(num_cpus=0)
    class Driver:
        def run(self, **arguments):
            executor = RayExecutor(RayExecutor.create_settings(), num_workers=2, **arguments)
            executor.start()
            created = executor.adapter.strategy._created_placement_group
            sums = executor.run(add_up)
            group_of_tasks = executor.run(lambda: ray.get(ray.remote(num_cpus=0)(get_current_placement_group).remote()))
            executor.shutdown()
            return created, sums, group_of_tasks

    inside = PlacementGroupSchedulingStrategy(group, placement_group_capture_child_tasks=True)
    driver = Driver.options(scheduling_strategy=inside).remote()
    try:
        assert ray.get(driver.run.remote(), timeout=90) == (False, [2, 2], [None, None])
        assert group.id.hex() in {
            key for key, one in ray.util.placement_group_table().items() if one["state"] == "CREATED"
        }, "it is not removed with the executor"
    finally:
        ray.kill(driver)
        ray.util.remove_placement_group(group)


@pytest.mark.parametrize("shape", [dict(num_workers=9), dict(num_hosts=2, num_workers_per_host=1)])
def test_placement_that_is_not_possible(make, shape):
    executor = make(**shape)
    executor.settings.placement_group_timeout_s = 1
    with pytest.raises(
        TimeoutError, match=r"^Ray made no placement group of .*'CPU': 1.* within 1 s: the cluster has .* free\."
    ):
        executor.start()
    assert {group["state"] for group in ray.util.placement_group_table().values()} == {"REMOVED"}
    with pytest.raises(RuntimeError, match="has not been started"):
        executor.run(place)
    executor.shutdown()


class OnlyThere:
    """An error, or a result, that the driver can't unpickle."""

    def __reduce__(self):
        return int, ("x",)


class TwoWords(Exception):
    def __init__(self, first, second):
        super().__init__(first)


def test_functions_that_give_no_result(make):
    def fail():
        raise TwoWords("first", "second")

    executor = make(num_workers=1)
    executor.start()
    with pytest.raises(RuntimeError, match=r"the function called sys\.exit\(0\); it has to return"):
        executor.run(sys.exit, [0])
    with pytest.raises(
        RuntimeError, match=r"(?s)what rank 0 returned or raised can't be unpickled here: .*(first|'second')"
    ):
        executor.run(fail)
    with pytest.raises(RuntimeError, match=r"can't be unpickled here: .*invalid literal"):
        executor.run(OnlyThere)
    assert executor.run(len, ["abc"]) == [3]


@pytest.mark.parametrize("method", ["run", "run_remote", "execute", "execute_single"])
def test_functions_that_workers_can_not_have(make, method):
    """They can't be pickled, or not unpickled: one line each, and the workers continue."""

    def call(value):
        fn = getattr(executor, method)
        return fn(len, [value]) if method.startswith("run") else fn(lambda _: value)

    executor = make(num_workers=1)
    executor.start()
    with pytest.raises(TypeError, match=r"^the function or one of its arguments can't be pickled: .*\.lock' object$"):
        call(threading.Lock())
    no = "the function or one of its arguments can't be unpickled on this worker: ValueError: invalid literal.*'x'"
    if method == "run_remote":
        with pytest.raises(Refused, match=f"{no}$"):
            ray.get(call(OnlyThere()))
    else:
        with pytest.raises(RuntimeError, match=f"^rank 0: {no}$"):
            call(OnlyThere())
    assert executor.run(len, ["abc"]) == [3]


@pytest.mark.parametrize(
    "value, error, text",
    [
        (threading.Lock(), TypeError, r"^the executable or one of its arguments can't be pickled: .*\.lock' object$"),
        (
            OnlyThere(),
            RuntimeError,
            r"^rank \d: the executable or one of its arguments can't be unpickled on this worker: ValueError: .*'x'$",
        ),
    ],
)
def test_executables_that_workers_can_not_have(make, value, error, text):
    executor = make(num_workers=2)
    with pytest.raises(error, match=text):
        executor.start(executable_cls=list, executable_args=[value])
    executor.start()
    assert executor.run(add_up) == [2, 2]


def test_network_interfaces_that_no_machine_has(make):
    executor = make(num_workers=2)
    executor.settings.nics = ["nope0"]
    with pytest.raises(
        RuntimeError, match=r"^rank \d: this process could not join the job: \S+/\d: no address in nope0"
    ):
        executor.start()


def test_error_of_one_worker_is_raised_and_frees_the_others(make):
    def fail():
        import horovod.numpy as hvd

        hvd.init()
        if hvd.rank() == 1:
            raise KeyError("on purpose")
        add_up()

    executor = make(num_workers=2)
    executor.start()
    pids = executor.execute(lambda _: os.getpid())
    with pytest.raises(KeyError, match="on purpose"):
        executor.run(fail)
    with pytest.raises(
        RuntimeError,
        match=r"The job of these workers has ended: a worker's function has failed. shutdown\(\) and start\(\) begin a new one",
    ):
        executor.run(add_up)
    executor.shutdown()
    assert wait_until_none(lambda: [pid for pid in pids if is_alive(pid)]) == []
    executor.start()
    assert executor.run(add_up) == [2, 2]


def test_interrupted_run_ends_its_functions(make, tmp_path):
    fifo, pids = tmp_path / "pids", []
    os.mkfifo(fifo)

    def wait_forever():
        fifo.open("w").write(f"{os.getpid()}\n")
        threading.Event().wait()

    def interrupt():
        with open(os.open(fifo, os.O_RDWR)) as started:
            pids.extend(int(started.readline()) for _ in range(2))
        os.kill(os.getpid(), signal.SIGINT)

    executor = make(num_workers=2)
    executor.start()
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        executor.run(wait_forever)
    thread.join()
    assert wait_until_none(lambda: [pid for pid in pids if is_alive(pid)]) == []
    with pytest.raises(RuntimeError, match=r"The job of these workers has ended: run\(\) was interrupted. shutdown"):
        executor.run(add_up)
    executor.shutdown()
    executor.start()
    assert executor.run(add_up) == [2, 2]


def test_error_of_all_workers_leaves_the_world_as_it_is(make):
    def fail():
        add_up()
        raise KeyError("on purpose")

    executor = make(num_workers=2)
    executor.start()
    for _ in range(2):
        with pytest.raises(KeyError, match="on purpose"):
            executor.run(fail)
    assert executor.run(add_up) == [2, 2]


def test_death_of_a_worker_is_reported(make):
    def die():
        import horovod.numpy as hvd

        hvd.init()
        if hvd.rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        add_up()

    executor = make(num_workers=2)
    executor.start()
    with pytest.raises(RuntimeError, match=r"rank 1 on host \S+/1 failed.*\nrank 1: .*actor died"):
        executor.run(die)


def test_workers_that_nobody_waits_for_end_with_the_one_that_failed(make):
    def fail():
        import horovod.numpy as hvd

        hvd.init()
        if hvd.rank() == 0:
            raise KeyError("on purpose")
        add_up()

    executor = make(num_workers=2)
    executor.start()
    first, second = executor.run_remote(fail)
    with pytest.raises(KeyError):
        ray.get(first)
    with pytest.raises(RuntimeError, match="HorovodInternalError"):
        ray.get(second, timeout=60)


def test_values_of_all_ranks_reach_the_callbacks(make):
    def train():
        import horovod.numpy as hvd
        from horovod.ray import ray_logger

        hvd.init()
        for step in range(3):
            ray_logger.log({"step": step, "rank": hvd.rank()}, chief_only=True)
        ray_logger.log({"rank": hvd.rank()})

    executor = make(num_workers=2)
    executor.start()
    values = []
    executor.run(train, callbacks=[values.append, lambda value: values.append(None)])
    values = [value for value in values if value]
    assert [value["step"] for value in values if "step" in value] == [0, 1, 2]
    assert sorted(value["rank"] for value in values if "step" not in value) == [0, 1]

    executor.run(train)  # the values go nowhere

    def complain(value):
        raise KeyError("in the callback")

    with pytest.raises(KeyError, match="in the callback"):
        executor.run(train, callbacks=[complain])


@pytest.mark.parametrize("shape", [dict(num_workers=2), dict(num_hosts=1, num_workers_per_host=2)])
def test_workers_see_all_gpus_of_their_node(make, shape):
    def visible(_):
        import horovod.numpy as hvd

        hvd.init()
        return hvd.local_rank(), os.environ["CUDA_VISIBLE_DEVICES"].split(",")

    executor = make(use_gpu=True, **shape)
    executor.start()
    places = executor.execute(visible)
    assert [rank for rank, _ in places] == [0, 1]
    assert sorted(places[0][1]) == ["0", "1"] and places[0][1] == places[1][1]


def what_the_dashboard_reads():
    """Returns what Ray's GCS stores about actors, jobs, workers, placement groups and tasks, and its key-value store."""
    state = ray._private.state.state
    connect = getattr(state, "_connect_and_get_accessor", None) or state._check_connected
    accessor = connect() or state.global_state_accessor
    names = ["get_job_table", "get_worker_table", "get_placement_group_table", "get_task_events", "get_profiling_data"]
    tables = [getattr(accessor, name)() for name in names if hasattr(accessor, name)]
    tables.append(accessor.get_actor_table(*([None, None] if "job_id" in accessor.get_actor_table.__doc__ else [])))
    entries = [value for table in tables for value in table]
    for space in (None, b"fun", b"job", b"session", b"tracing"):
        for key in internal_kv._internal_kv_list(b"", namespace=space):
            entries.append(internal_kv._internal_kv_get(key, namespace=space) or b"")
    return b"".join(entries)


def test_no_secret_is_in_an_environment_argument_or_file_of_rays(make, ray_folder):
    executor = make(num_workers=2)
    executor.start()
    executor.run(add_up)
    secret = executor.adapter._job.join_info.credentials
    key = next(line for line in secret.replace("\\n", "\n").splitlines() if len(line) == 64 and "-" not in line)
    ours = pids_with(MARK.encode() + b"\0")
    assert len([pid for pid in ours if "horovod-agent" in command_line(pid)]) == 2
    for pid in ours:
        assert key.encode() not in environment_of(pid) and key not in command_line(pid)
    files = [path for path in Path(ray_folder).rglob("*") if path.is_file() and not path.is_symlink()]
    assert files and not [path for path in files if key.encode() in path.read_bytes()]
    assert key not in repr(executor.adapter._job.join_info)
    state = what_the_dashboard_reads()
    assert b"BaseHorovodWorker" in state and key.encode() not in state


def test_killed_driver_leaves_nothing():
    address = ray.get_runtime_context().gcs_address
    driver = subprocess.Popen(
        [sys.executable, JOBS / "ray_driver.py", address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        pids = [int(word) for word in driver.stdout.readline().split()]
        assert len(pids) == 2
    finally:
        driver.kill()
        driver.communicate()
    assert wait_until_none(lambda: [pid for pid in pids if is_alive(pid)]) == []
    assert wait_until_none(programs_of_jobs) == []


@pytest.mark.parametrize("size", [["--num-workers", "2"], ["--min-workers", "2", "--max-workers", "2"]])
def test_example(size):
    script = Path(__file__).resolve().parents[2] / "examples/ray/digits_on_ray.py"
    address = ray.get_runtime_context().gcs_address
    done = subprocess.run(
        # Longer than the example waits for its workers: its own error says more.
        [sys.executable, script, "--address", address, *size],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{done.stderr}\nfree: {ray.available_resources()}"
    assert re.search(r"^epoch 5: test accuracy [\d.]+%, workers: 2$", done.stdout, re.M), done.stdout
    assert float(re.search(r"^2 workers, test accuracy ([\d.]+)%$", done.stdout, re.M).group(1)) > 80


def test_executor_that_is_not_started_or_twice(make):
    executor = make(num_workers=1)
    with pytest.raises(RuntimeError, match="has not been started"):
        executor.execute(place)
    executor.shutdown()
    executor.start()
    with pytest.raises(RuntimeError, match="has been started already"):
        executor.start()


def test_worker_actor():
    class Own(BaseHorovodWorker):
        pass

    assert Own().hostname() == socket.gethostname()
    actor = ray.remote(BaseHorovodWorker).remote()
    actor.update_env_vars.remote({"RAY_TEST": 1123123})
    assert ray.get(actor.env_vars.remote())["RAY_TEST"] == "1123123"
    ray.kill(actor)


def test_ray_client(ray_folder):
    """Beside a separate process for the client's server, whose workers and daemon are on the cluster."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = ray.get_runtime_context().gcs_address
    serve = [
        sys.executable,
        "-m",
        "ray.util.client.server",
        "--address",
        address,
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    server = subprocess.Popen([*serve, "--mode", "specific-server"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        client = subprocess.run(
            [sys.executable, JOBS / "ray_client.py", f"ray://127.0.0.1:{port}"],
            capture_output=True,
            text=True,
            timeout=120,
        )
    finally:
        server.terminate()
        server.communicate()
    assert client.returncode == 0, client.stderr
    *said, refused = client.stdout.splitlines()
    assert said == ["[6.0, 6.0, 6.0]", "[9.0, 9.0, 9.0] 7", "raised KeyError", "[4.0, 4.0]"]
    assert re.fullmatch(r"rank 0: this process could not join the job: \S+: no address in nope0; it has .*", refused)
    assert wait_until_none(programs_of_jobs) == []
