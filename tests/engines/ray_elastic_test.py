"""horovod.ray with elastic jobs, on clusters whose nodes come and go: raylets on this machine, each with a different loopback address."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import ray
import ray.cloudpickle
from ray.cluster_utils import Cluster
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from horovod.ray import ElasticRayExecutor, RayExecutor, elastic_v2
from horovod.runner.elastic.discovery import HostDiscovery
from processes import command_line, pids_with, wait_until_none

ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers can't import this module
STORE = 100 * 2**20  # bytes, of objects
MARK = f"RAY_ELASTIC_TEST={os.getpid()}"
MADE_UP_HOSTS = {f"node:host-{number}": 1 for number in range(1, 7)}


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left():
    name, value = MARK.split("=")
    os.environ[name] = value
    yield
    del os.environ[name]
    assert wait_until_none(lambda: [pid for pid in pids_with(MARK.encode() + b"\0") if pid != os.getpid()]) == []


@pytest.fixture(scope="module")
def cluster(nothing_is_left, ray_folder):
    """One of a node with four CPUs, and with resources that look like those of further nodes."""
    node = dict(num_cpus=4, num_gpus=4, include_dashboard=False, object_store_memory=STORE, resources=MADE_UP_HOSTS)
    cluster = Cluster(initialize_head=True, head_node_args=dict(node, temp_dir=ray_folder))
    ray.init(address=cluster.address)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(autouse=True)
def no_job_is_left():
    yield
    assert wait_until_none(programs_of_jobs) == []


def programs_of_jobs():
    return [pid for pid in pids_with(MARK.encode() + b"\0") if "bin/horovod-" in command_line(pid)]


class Hosts(HostDiscovery):
    """Those that a test wants there to be."""

    def __init__(self, **slots):
        self.set(**slots)

    def set(self, **slots):
        self.slots = {name.replace("_", "-"): number for name, number in slots.items()}

    def find_available_hosts_and_slots(self):
        return self.slots


class Progress:
    """A callback: what the workers have said so far, and what the test does about it."""

    def __init__(self):
        self.started = []  # process ids, in order
        self.steps = []  # of rank 0: (time, step, size, pids of all ranks)
        self._changed = threading.Condition()

    def __call__(self, value):
        with self._changed:
            if "started" in value:
                self.started.append(value["started"])
            else:
                self.steps.append((value["time"], value["step"], value["size"], value["pids"]))
            self._changed.notify_all()

    def wait_for_size(self, size, timeout=60):
        """Until a later step was made by a world of so many; returns that step."""
        with self._changed:
            seen = len(self.steps)
            found = self._changed.wait_for(lambda: [step for step in self.steps[seen:] if step[2] == size], timeout)
            assert found, f"no world of {size}: {self.steps[-3:]}"
            return found[0]


@pytest.fixture
def run():
    """Starts the training in a thread; `.progress`, and `.end()` has it end and returns the results."""

    class Run:
        def __init__(self, executor, train=None):
            self.progress, self._results, self._error = Progress(), None, None
            self.executor = executor
            executor.start()
            here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
            self._flag = Flag.options(num_cpus=0, scheduling_strategy=here).remote()
            self._thread = threading.Thread(target=self._run, args=[train or training(self._flag)])
            self._thread.start()

        def _run(self, train):
            try:
                self._results = self.executor.run(train, callbacks=[self.progress])
            except Exception as error:
                self._error = error

        def end(self):
            ray.get(self._flag.set.remote())
            self._thread.join(90)
            assert not self._thread.is_alive(), "it does not end"
            if self._error is not None:
                raise self._error
            return self._results

    runs = []

    def start(executor, train=None):
        runs.append(Run(executor, train))
        return runs[-1]

    yield start
    for one in runs:
        ray.get(one._flag.set.remote())
        one._thread.join(60)
        ray.kill(one._flag)


@ray.remote
class Flag:
    """Whether the training is to end."""

    def __init__(self):
        self._set = False

    def set(self):
        self._set = True

    def get(self):
        return self._set


def training(flag):
    """Trains until the flag is set; returns (rank, size, pid, steps)."""

    def train():
        import numpy

        import horovod.numpy as hvd
        from horovod.ray import ray_logger

        hvd.init()
        ray_logger.log({"started": os.getpid()})
        state = hvd.elastic.State(step=0, total=numpy.zeros(1), ended=False)

        @hvd.elastic.run
        def loop(state):
            while not state.ended:
                state.total += hvd.allreduce(numpy.ones(1), op=hvd.Average, name="step")
                pids = hvd.allgather(numpy.array([os.getpid()]), name="pids").tolist()
                state.step += 1
                said = {"time": time.time(), "step": state.step, "size": hvd.size(), "pids": pids}
                ray_logger.log(said, chief_only=True)
                state.ended = hvd.broadcast_object(ray.get(flag.get.remote()) if hvd.rank() == 0 else None, name="end")
                state.commit()
            assert state.total[0] == state.step, "a step was lost or made twice"

        loop(state)
        return hvd.rank(), hvd.size(), os.getpid(), state.step

    return train


def executor_for(discovery=None, **arguments):
    settings = RayExecutor.create_settings()
    settings.discovery = discovery
    return RayExecutor(settings, override_discovery=discovery is None, **arguments)


def test_hosts_are_added_and_removed(cluster, run):
    hosts = Hosts(host_1=2)
    job = run(executor_for(hosts, min_workers=1))
    _, _, _, first = job.progress.wait_for_size(2)
    hosts.set(host_1=2, host_2=1, host_3=1)
    _, _, _, all_four = job.progress.wait_for_size(4)
    assert set(first) < set(all_four), "those that were there have stayed"
    hosts.set(host_2=1)
    _, _, _, last = job.progress.wait_for_size(1)
    assert set(last) < set(all_four) - set(first)
    results = job.end()
    assert [result[:3] for result in results] == [(0, 1, last[0])]
    assert len(job.progress.started) == 4


def test_hosts_are_removed_and_others_added(cluster, run):
    hosts = Hosts(host_1=2, host_2=1, host_3=1)
    job = run(executor_for(hosts, min_workers=1))
    job.progress.wait_for_size(4)
    hosts.set(host_1=2)
    _, _, _, stayed = job.progress.wait_for_size(2)
    hosts.set(host_1=2, host_4=1, host_5=1)
    _, _, _, last = job.progress.wait_for_size(4)
    assert set(stayed) < set(last)
    results = job.end()
    assert [result[:2] for result in results] == [(rank, 4) for rank in range(4)]
    assert len(job.progress.started) == 6


def test_never_more_than_max_workers_nor_fewer_than_min(cluster, run):
    hosts = Hosts(host_1=1)
    job = run(executor_for(hosts, min_workers=2, max_workers=2))
    hosts.set(host_1=1, host_4=1, host_5=1)
    job.progress.wait_for_size(2)
    assert [result[:2] for result in job.end()] == [(0, 2), (1, 2)]
    assert {size for _, _, size, _ in job.progress.steps} == {2}
    assert len(job.progress.started) == 2


def test_gpus_are_each_workers_own(cluster):
    def train():
        import horovod.numpy as hvd

        hvd.init()
        state = hvd.elastic.State(step=0)
        hvd.elastic.run(lambda state: None)(state)
        return hvd.local_rank(), os.environ["CUDA_VISIBLE_DEVICES"], hvd.size()

    executor = executor_for(Hosts(host_1=2), min_workers=2, use_gpu=True)
    executor.start()
    (first, one, _), (second, other, size) = executor.run(train)
    assert (first, second, size) == (0, 0, 2) and one != other and {one, other} < set("0123")


def test_killed_worker_does_not_stop_the_others(cluster, run):
    job = run(executor_for(min_workers=1, max_workers=3))
    _, _, _, pids = job.progress.wait_for_size(3)
    killed_at = time.time()
    os.kill(pids[1], signal.SIGKILL)
    next_step, _, _, survivors = job.progress.wait_for_size(2)
    print(f"the next step of the others: {1000 * (next_step - killed_at):.0f} ms after the kill")
    assert set(survivors) == set(pids) - {pids[1]}
    _, _, _, last = job.progress.wait_for_size(3)
    assert set(survivors) < set(last)
    results = job.end()
    assert [result[:2] for result in results] == [(rank, 3) for rank in range(3)]
    assert len({result[3] for result in results}) == 1


def test_nodes_come_and_go(cluster, run):
    job = run(executor_for(min_workers=1))
    _, _, _, first = job.progress.wait_for_size(4)
    node = cluster.add_node(num_cpus=2, object_store_memory=STORE, node_ip_address="127.0.0.2")
    _, _, _, all_six = job.progress.wait_for_size(6)
    assert set(first) < set(all_six)
    lost_at = time.time()
    cluster.remove_node(node)  # its raylet, with all its actors
    next_step, _, _, last = job.progress.wait_for_size(4)
    print(f"the next step of the others: {1000 * (next_step - lost_at):.0f} ms after the node's end")
    assert set(last) == set(first), "the survivors are the same processes"
    assert [result[:2] for result in job.end()] == [(rank, 4) for rank in range(4)]


def drain(cluster, node):
    address = ["--address", cluster.address, "--node-id", node.node_id]
    reason = [
        "--reason",
        "DRAIN_NODE_REASON_PREEMPTION",
        "--reason-message",
        "test",
        "--deadline-remaining-seconds",
        "600",
    ]
    command = [sys.executable, "-m", "ray.scripts.scripts", "drain-node", *address, *reason]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.skipif(not hasattr(ray._private.state.GlobalState, "get_draining_nodes"), reason="this Ray does not tell")
def test_draining_node_is_left_without_losing_a_step(cluster, run):
    node = cluster.add_node(num_cpus=2, object_store_memory=STORE, node_ip_address="127.0.0.3")
    job = run(executor_for(min_workers=1))
    _, _, _, all_six = job.progress.wait_for_size(6)
    done = drain(cluster, node)
    assert done.returncode == 0, done.stderr
    _, _, _, last = job.progress.wait_for_size(4)
    assert set(last) < set(all_six)
    assert len(job.end()) == 4
    steps = [step for _, step, _, _ in job.progress.steps]
    assert steps == sorted(set(steps)), "a step was made twice"
    cluster.remove_node(node)


# The daemon's verdict, and what Ray has brought.
BOTH_SAY_WHY = r"(?s)KeyError.*on purpose.*The last worker that failed said: .*KeyError: 'on purpose'"


@pytest.mark.parametrize("ranks", [[0, 1], [1]])
def test_bug_of_the_script_ends_the_job(cluster, ranks):
    def train():
        import numpy

        import horovod.numpy as hvd

        hvd.init()
        if hvd.rank() in ranks:
            raise KeyError("on purpose")
        hvd.allreduce(numpy.ones(1))

    executor = executor_for(Hosts(host_1=2), min_workers=2)
    executor.start()
    with pytest.raises(RuntimeError, match=BOTH_SAY_WHY):
        executor.run(train)


def test_cause_is_named_if_ray_is_slower_than_the_daemon(cluster, monkeypatch):
    take = elastic_v2._Run._take_results

    def take_after_the_verdict(run, patience):
        if run._job.wait(0) is None:
            run._job.wait(patience)
        else:
            take(run, patience)

    monkeypatch.setattr(elastic_v2._Run, "_take_results", take_after_the_verdict)

    def train():
        import horovod.numpy as hvd

        hvd.init()
        raise KeyError("on purpose")

    executor = executor_for(Hosts(host_1=1), min_workers=1)
    executor.start()
    with pytest.raises(RuntimeError, match=BOTH_SAY_WHY):
        executor.run(train)


class OnlyThere:
    """A result that the driver can't unpickle."""

    def __reduce__(self):
        return int, ("x",)


@pytest.mark.parametrize(
    "fn, args, text",
    [
        (sys.exit, [0], r"the function called sys\.exit\(0\); it has to return"),
        (threading.Lock, [], "the function's result, a lock, can't be pickled"),
        (OnlyThere, [], "no result came back from the workers: .*invalid literal"),
    ],
)
def test_functions_that_give_no_result_end_the_job(cluster, fn, args, text):
    executor = executor_for(Hosts(host_1=1), min_workers=1)
    executor.start()
    with pytest.raises(RuntimeError, match=text):
        executor.run(fn, args)


def reduced_to(maker, argument):
    """A value that is unpickled by a call."""

    class Reduced:
        def __reduce__(self):
            return maker, (argument,)

    return Reduced()


def first_in(folder):
    """Fails for who comes second."""
    try:
        (folder / "first").touch(exist_ok=False)
    except FileExistsError:
        (folder / "second").touch()
        raise


@pytest.mark.parametrize(
    "nics, fn, executable, text",
    [
        (["nope0"], "abc", None, r"^this process could not join the job: host-\d/\d+: no address in nope0; it has lo"),
        (None, OnlyThere(), None, r"^the function or one of its .* unpickled on this worker: ValueError: .*'x'$"),
        (None, "abc", OnlyThere(), r"^the executable or one of its .* unpickled on this worker: ValueError: .*'x'$"),
    ],
)
def test_workers_that_can_not_take_part_end_the_job_at_once(cluster, nics, fn, executable, text):
    executor = executor_for(Hosts(host_1=2, host_2=1), min_workers=1)
    executor.settings.nics = nics
    executor.start(executable_cls=list, executable_args=[executable] if executable else None)
    with pytest.raises(RuntimeError, match=text):
        executor.run(len, [fn])


def test_workers_that_can_not_be_sent_the_function(cluster):
    executor = executor_for(Hosts(host_1=1), min_workers=1)
    executor.start()
    with pytest.raises(TypeError, match=r"^the function or one of its arguments can't be pickled: .*\.lock' object$"):
        executor.run(len, [threading.Lock()])
    executor.shutdown()
    with pytest.raises(TypeError, match=r"^the executable or one of its arguments can't be pickled: .*\.lock' object$"):
        executor.start(executable_cls=list, executable_args=[threading.Lock()])


def test_workers_that_can_take_part_do_without_the_others(cluster, tmp_path):
    class Looks(Hosts):
        """Those that there have been since a worker could not take part."""

        def find_available_hosts_and_slots(self):
            if (tmp_path / "second").exists():
                self.count = getattr(self, "count", 0) + 1
            if getattr(self, "count", 0) == 3:
                (tmp_path / "end").touch()
            return super().find_available_hosts_and_slots()

    def train(_):
        while not (tmp_path / "end").exists():
            time.sleep(0.05)
        return "done"

    executor = executor_for(Looks(host_1=2), min_workers=1)
    executor.start()
    assert executor.run(train, [reduced_to(first_in, tmp_path)]) == ["done"]


def test_answer_of_a_discovery_that_is_none(cluster):
    executor = executor_for(Hosts(host_1="2"), min_workers=1)
    executor.start()
    with pytest.raises(
        TypeError, match=r"^find_available_hosts_and_slots\(\): 'host-1': '2' is not a host with a number"
    ):
        executor.run(len, ["abc"])


def test_too_few_workers_for_too_long(cluster):
    executor = executor_for(Hosts(host_1=1), min_workers=2, elastic_timeout=3)
    executor.start()
    with pytest.raises(RuntimeError, match=r"2 slots|2 workers"):
        executor.run(lambda: None)


def test_run_does_not_wait_for_an_actor_without_a_place(cluster, monkeypatch):
    monkeypatch.setattr(elastic_v2, "_LEAVE_SECONDS", 1e6)
    executor = executor_for(Hosts(host_1=1, nowhere=1), min_workers=1)
    executor.start()

    def train():
        import horovod.numpy as hvd

        hvd.init()
        return hvd.size()

    assert executor.run(train) == [1]


def test_what_elastic_jobs_can_not(cluster):
    executor = executor_for(min_workers=1)
    executor.start()
    with pytest.raises(NotImplementedError, match=r"use run\(\)"):
        executor.run_remote(lambda: None)
    with pytest.raises(NotImplementedError, match=r"use execute\(\)"):
        executor.execute_single(lambda _: None)
    with pytest.raises(ValueError, match=r"override_discovery=False needs settings.discovery"):
        RayExecutor(RayExecutor.create_settings(), min_workers=1, override_discovery=False).start()
    executor.shutdown()


def test_executables_of_elastic_jobs(cluster):
    class Own:
        def __init__(self, value):
            self.value = value

    executor = executor_for(Hosts(host_1=2), min_workers=2)
    executor.start(executable_cls=Own, executable_args=[7], extra_env_vars={"RAY_TEST": 5})

    def train(own):
        import horovod.numpy as hvd

        hvd.init()
        hvd.elastic.run(lambda state: None)(hvd.elastic.State(step=0))
        return hvd.rank(), own.value, os.environ["RAY_TEST"], os.environ["HOROVOD_HOSTNAME"]

    assert executor.execute(train) == [(0, 7, "5", "host-1"), (1, 7, "5", "host-1")]


def test_older_interface(cluster, run):
    with pytest.deprecated_call(match="min_np is deprecated, use min_num_proc instead"):
        settings = ElasticRayExecutor.create_settings(min_np=2, max_num_proc=2, verbose=1)
    executor = ElasticRayExecutor(settings, cpus_per_slot=1, env_vars={"RAY_TEST": 5})
    assert isinstance(settings.discovery, (type(None), elastic_v2.RayHostDiscovery))
    job = run(executor)
    job.progress.wait_for_size(2)
    assert [result[:2] for result in job.end()] == [(0, 2), (1, 2)]
