"""The rules of horovod.ray that need no cluster: arguments, ranks, nodes as hosts, and the placement of an elastic job."""

import importlib
import queue
import sys
from types import SimpleNamespace

import pytest
import ray

from horovod.ray import ElasticRayExecutor, RayExecutor, elastic, elastic_v2, logging_queue
from horovod.ray.discovery import check_hosts
from horovod.ray.logging_queue import CallbackQueue
from horovod.ray.roster import Roster
from horovod.ray.static import in_order_of_ranks


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(num_workers=1, min_workers=1), "min_workers makes a job elastic, and num_workers makes it static"),
        (dict(num_hosts=1, min_workers=1), "min_workers makes a job elastic, and num_hosts makes it static"),
        (dict(max_workers=2), "max_workers=2 makes the job elastic"),
        (dict(min_workers=3, max_workers=2), r"`max_workers` \(2\) is less than `min_workers` \(3\)"),
        (dict(num_workers=1, num_hosts=1), "Both `num_workers` and `num_hosts` provided: give one of them"),
        (dict(), "One of `num_workers`, `num_hosts` and `min_workers` must be given"),
        (dict(num_workers=0), "`num_workers` must be 1 or more: Got 0"),
        (dict(min_workers=0), "`min_workers` must be 1 or more: Got 0"),
        (dict(num_workers=1, gpus_per_worker=1), "gpus_per_worker=1 needs use_gpu=True"),
        (dict(num_workers=1, gpus_per_worker=-1, use_gpu=True), "gpus_per_worker must be >= 1: Got -1"),
        (dict(min_workers=1, cooldown_range=[5, 1]), r"`cooldown_range` must be \(MIN, MAX\)"),
        (dict(min_workers=1, cooldown_range=["a", "b"]), r"`cooldown_range` must be \(MIN, MAX\)"),
        (dict(min_workers=1, reset_limit=-1), "reset_limit is -1: it must be 0 or more"),
        (dict(min_workers=1, elastic_timeout=0), "elastic_timeout must be a number of seconds, more than 0"),
        (dict(num_workers=1, cpus_per_worker=-1), "cpus_per_worker is -1: it must be 0 or more"),
        (dict(num_workers=1, cpus_per_worker=float("nan")), "cpus_per_worker is nan: it must be 0 or more"),
    ],
)
def test_arguments_that_can_not_be(arguments, message):
    with pytest.raises(ValueError, match=message):
        RayExecutor(RayExecutor.create_settings(), **arguments)


def executor_with(**arguments):
    return RayExecutor(RayExecutor.create_settings(), **arguments)


def static():
    return executor_with(num_workers=1)


def elastic_settings(**more):
    return ElasticRayExecutor.create_settings(**more)


class NoDiscovery:
    find_available_hosts_and_slots = 3


def without_discovery(discovery):
    settings = RayExecutor.create_settings()
    settings.discovery = discovery
    RayExecutor(settings, min_workers=1, override_discovery=False).start()


def changed_settings():
    executor = static()
    executor.settings.nics = 3
    executor.start()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: RayExecutor(None, num_workers=1), r"settings is None: RayExecutor\.create_settings\(\) makes them"),
        (lambda: RayExecutor({}, num_workers=1), r"settings is {}: RayExecutor\.create_settings\(\) makes them"),
        (lambda: executor_with(num_workers="2"), "num_workers must be a whole number: Got '2'"),
        (lambda: executor_with(num_workers=2.5), r"num_workers must be a whole number: Got 2\.5"),
        (lambda: executor_with(min_workers="1"), "min_workers must be a whole number: Got '1'"),
        (
            lambda: executor_with(min_workers=1, elastic_timeout="9"),
            "elastic_timeout must be a number of seconds: Got '9'",
        ),
        (lambda: executor_with(num_workers=1, cpus_per_worker="1"), "cpus_per_worker must be a number: Got '1'"),
        (lambda: executor_with(num_workers=1, use_gpu="no"), "use_gpu must be True or False: Got 'no'"),
        (
            lambda: executor_with(num_workers=1, use_gpu=True, gpus_per_worker="1"),
            "gpus_per_worker must be a number: Got '1'",
        ),
        (
            lambda: executor_with(num_workers=1, use_current_placement_group=None),
            "use_current_placement_group must be True",
        ),
        (lambda: executor_with(min_workers=1, override_discovery="x"), "override_discovery must be True or False"),
        (lambda: RayExecutor.create_settings(timeout_s="9"), "timeout_s must be a number of seconds: Got '9'"),
        (
            lambda: RayExecutor.create_settings(placement_group_timeout_s=[]),
            "placement_group_timeout_s must be a number",
        ),
        (lambda: RayExecutor.create_settings(nics=3), "nics must be a list of names of network interfaces: Got 3"),
        (
            lambda: RayExecutor.create_settings(nics=[3]),
            r"nics must be a list of names of network interfaces: Got \[3\]",
        ),
        (lambda: elastic_settings(nics=b"eth0"), "nics must be a list of names"),
        (lambda: elastic_settings(verbose="2"), "verbose must be a whole number: Got '2'"),
        (lambda: elastic_settings(min_num_proc="1"), "min_num_proc must be a whole number: Got '1'"),
        (lambda: elastic_settings(max_num_proc=1.5), r"max_num_proc must be a whole number: Got 1\.5"),
        (lambda: elastic_settings(reset_limit="x"), "reset_limit must be a whole number: Got 'x'"),
        (
            lambda: elastic_settings(elastic_timeout=None, timeout_s=True),
            "timeout_s must be a number of seconds: Got True",
        ),
        (changed_settings, "nics must be a list of names of network interfaces: Got 3"),
        (lambda: without_discovery(None), "override_discovery=False needs settings.discovery: .*Got None"),
        (lambda: without_discovery(NoDiscovery()), "override_discovery=False needs settings.discovery: .*NoDiscovery"),
        (lambda: static().start(executable_cls=3), "executable_cls must be a function: Got 3"),
        (lambda: static().start(executable_cls=int, executable_args=3), "executable_args must be a list or tuple"),
        (lambda: static().start(executable_cls=int, executable_kwargs=[3]), "executable_kwargs must be a dict"),
        (lambda: static().start(extra_env_vars=["A"]), r"extra_env_vars must be a dict: Got \['A'\]"),
        (
            lambda: static().start(extra_env_vars={3: "a"}),
            "extra_env_vars: variables and their values must be strings: Got 3",
        ),
        (lambda: static().run(None), "fn must be a function: Got None"),
        (lambda: static().run(len, ("abc",), [1]), "kwargs must be a dict"),
        (lambda: static().run(len, "abc"), "args must be a list or tuple of the function's arguments: Got 'abc'"),
        (lambda: static().run(len, 3), "args must be a list or tuple"),
        (lambda: static().run(len, callbacks=3), "callbacks must be a list of functions: Got 3"),
        (lambda: static().run(len, callbacks=[3]), "each of callbacks must be a function: Got 3"),
        (lambda: static().execute(3), "fn must be a function: Got 3"),
        (lambda: static().execute(len, len), "callbacks must be a list of functions: Got <built-in"),
        (lambda: static().run_remote("f"), "fn must be a function: Got 'f'"),
        (lambda: static().execute_single(None), "fn must be a function: Got None"),
        (lambda: ElasticRayExecutor(None), r"settings is None: ElasticRayExecutor\.create_settings\(\) makes them"),
        (
            lambda: ElasticRayExecutor(RayExecutor.create_settings()),
            r"ElasticRayExecutor\.create_settings\(\) makes them",
        ),
        (lambda: ElasticRayExecutor(elastic_settings(), cpus_per_slot="1"), "cpus_per_slot must be a number: Got '1'"),
        (lambda: ElasticRayExecutor(elastic_settings(), env_vars=3), "env_vars must be a dict: Got 3"),
        (lambda: ElasticRayExecutor(elastic_settings()).run(3), "worker_fn must be a function: Got 3"),
        (lambda: elastic_v2.RayHostDiscovery(cpus_per_worker="1"), "cpus_per_worker must be a number: Got '1'"),
        (lambda: elastic.TestDiscovery(1, "3", 0), "max_hosts must be a whole number: Got '3'"),
        (lambda: elastic.TestDiscovery(1, 3, "0"), "change_frequency_s must be a number: Got '0'"),
        (lambda: check_hosts([("a", 1)]), r"find_available_hosts_and_slots\(\) must return a dict of slots by host"),
        (lambda: check_hosts({"a": "1"}), r"find_available_hosts_and_slots\(\): 'a': '1' is not a host with"),
    ],
)
def test_arguments_of_wrong_types_are_one_line(call, message):
    with pytest.raises((TypeError, ValueError), match="^[^\n]*" + message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_parts_of_horovods_that_are_not_here():
    for module, name in (("runner", "Coordinator"), ("utils", "detect_nics"), ("driver_service", "driver_service")):
        with pytest.raises(ImportError):
            exec(f"from horovod.ray.{module} import {name}")


def test_discovery_of_workers_with_no_gpu():
    with pytest.raises(ValueError, match="gpus_per_worker is 0: it must be more than 0 if use_gpu is True"):
        elastic_v2.RayHostDiscovery(use_gpu=True, gpus_per_worker=0)


def test_ranks_go_by_node_the_drivers_first():
    assert in_order_of_ranks(["a", "b", "a", "c", "b"], "c") == [3, 0, 2, 1, 4]
    assert in_order_of_ranks(["a", "b", "a"], "elsewhere") == [0, 2, 1]
    assert in_order_of_ranks([], "a") == []


def test_older_interface_checks_its_arguments():
    settings = ElasticRayExecutor.create_settings()
    with pytest.raises(ValueError, match=r"gpus_per_slot=.* needs use_gpu=True"):
        ElasticRayExecutor(settings, gpus_per_slot=1)
    with pytest.raises(TypeError, match="'unknown'"):
        ElasticRayExecutor.create_settings(unknown=1)


def test_verbose_may_be_true():
    """Horovod's examples pass it."""
    assert elastic_settings(verbose=True).verbose == 1
    ElasticRayExecutor(elastic_settings(verbose=True), use_gpu=True, cpus_per_slot=2)


def nodes(*resources):
    return [
        {"NodeManagerAddress": f"host-{number}", "Resources": dict(one), "alive": True}
        for number, one in enumerate(resources)
    ]


@pytest.mark.parametrize(
    "arguments, resources, slots",
    [
        (dict(cpus=1), [{"CPU": 4, "GPU": 1}], [4]),
        (dict(cpus=2), [{"CPU": 5}], [2]),
        (dict(cpus=1, use_gpu=True), [{"CPU": 4, "GPU": 1}], [1]),
        (dict(cpus=1, gpus=2, use_gpu=True), [{"CPU": 4, "GPU": 4}], [2]),
        (dict(cpus=1, use_gpu=True), [{"CPU": 8, "GPU": 2}] * 3, [2, 2, 2]),
        (dict(gpus=2, use_gpu=True), [{"CPU": 8, "GPU": 2}] * 3, [1, 1, 1]),
        (dict(cpus=1, use_gpu=True), [{"CPU": 8}] * 3, []),
        (dict(cpus=1), [{}], []),
    ],
)
@pytest.mark.parametrize("module, suffix", [(elastic, "slot"), (elastic_v2, "worker")])
def test_nodes_are_hosts_with_slots(monkeypatch, module, suffix, arguments, resources, slots):
    monkeypatch.setattr(ray, "nodes", lambda: map(dict, nodes(*resources)))
    names = {"cpus": f"cpus_per_{suffix}", "gpus": f"gpus_per_{suffix}"}
    discovery = module.RayHostDiscovery(**{names.get(name, name): value for name, value in arguments.items()})
    found = discovery.find_available_hosts_and_slots()
    assert list(found.values()) == slots
    assert list(found) == [f"host-{number}" for number in range(len(slots))]


def test_dead_nodes_are_none_and_two_of_one_address_one(monkeypatch):
    listed = nodes({"CPU": 1}, {"CPU": 2}, {"CPU": 4})
    listed[0]["alive"] = False
    listed[2]["NodeManagerAddress"] = "host-1"
    monkeypatch.setattr(ray, "nodes", lambda: listed)
    assert elastic_v2.RayHostDiscovery().find_available_hosts_and_slots() == {"host-1": 6}


@pytest.mark.parametrize("module", [elastic, elastic_v2])
def test_nodes_that_seem_to_come_and_go(monkeypatch, capsys, module):
    monkeypatch.setattr(ray, "nodes", lambda: nodes({"CPU": 2}, {"CPU": 2}, {"CPU": 2}))
    with pytest.raises(ValueError, match="nodes are not ended by this version"):
        module.TestDiscovery(1, 3, 0, _graceful=False)
    discovery = module.TestDiscovery(min_hosts=1, max_hosts=3, change_frequency_s=0, verbose=False)
    assert len(discovery.find_available_hosts_and_slots()) == 3
    counts = [len(discovery.find_available_hosts_and_slots()) for _ in range(50)]
    assert set(counts) == {1, 2, 3} and {abs(one - other) for one, other in zip(counts, counts[1:])} == {1}
    assert capsys.readouterr().out == ""
    still = module.TestDiscovery(min_hosts=1, max_hosts=3, change_frequency_s=3600)
    assert [len(still.find_available_hosts_and_slots()) for _ in range(5)] == [3] * 5
    assert "3 of 3 hosts: {'host-0': 2" in capsys.readouterr().out


def test_roster_starts_where_there_is_room_and_drains_what_is_too_much():
    roster = Roster(most=3)
    assert roster.plan({"a": 2, "b": 2}, {}, 0) == (["a", "a", "b"], [])
    assert roster.plan({"a": 2, "b": 2}, {"1": "a", "2": "b"}, 0) == (["a"], [])
    assert roster.plan({"b": 1}, {"1": "a", "2": "b", "3": "b"}, 0) == ([], ["1", "3"])
    assert Roster().plan({"a": 2}, {"1": "a"}, 0) == (["a"], [])


def test_roster_pauses_where_workers_fail():
    roster = Roster()
    roster.note_failure("a", 10)
    assert roster.plan({"a": 1, "b": 1}, {}, 10).start == ["a", "b"], "not after the first failure"
    roster.note_failure("a", 11)
    assert roster.plan({"a": 1, "b": 1}, {}, 11.9).start == ["b"]
    assert roster.plan({"a": 1, "b": 1}, {}, 12).start == ["a", "b"]
    for _ in range(20):
        roster.note_failure("a", 20)
    assert roster.plan({"a": 1}, {}, 49).start == [] and roster.plan({"a": 1}, {}, 50).start == ["a"]
    roster.note_failure("a", 700)
    assert roster.plan({"a": 1}, {}, 700).start == ["a"], "what was long ago does not count"


def test_roster_leaves_a_host_that_refuses_alone():
    roster = Roster()
    roster.note_refusal("a", 10)
    assert roster.plan({"a": 1, "b": 1}, {}, 39).start == ["b"]
    assert roster.plan({"a": 1, "b": 1}, {}, 40).start == ["a", "b"]
    roster = Roster(cooldown=(1, 5))
    roster.note_refusal("a", 10)
    assert roster.plan({"a": 1}, {}, 14).start == [] and roster.plan({"a": 1}, {}, 15).start == ["a"]


def test_roster_keeps_the_cooldown_range():
    roster = Roster(cooldown=(10, 15))
    roster.note_failure("a", 0)
    assert roster.plan({"a": 1}, {}, 9).start == [] and roster.plan({"a": 1}, {}, 10).start == ["a"]
    roster.note_failure("a", 10)
    assert roster.plan({"a": 1}, {}, 24).start == [] and roster.plan({"a": 1}, {}, 25).start == ["a"]


@pytest.mark.parametrize("cooldown", [None, (1, 30)])
def test_roster_takes_any_number_of_failures(cooldown):
    roster = Roster(cooldown=cooldown)
    for _ in range(1100):
        roster.note_failure("a", 20)
    assert roster.plan({"a": 1}, {}, 49).start == [] and roster.plan({"a": 1}, {}, 50).start == ["a"]


def test_what_ends_a_callback_is_raised_after_the_last_value(monkeypatch):
    class Values(queue.Queue):
        def __init__(self, actor_options):
            super().__init__()

        def shutdown(self):
            pass

    here = SimpleNamespace(get_node_id=lambda: "00" * 28)
    monkeypatch.setattr(logging_queue, "Queue", Values)
    monkeypatch.setattr(ray, "get_runtime_context", lambda: here)
    values = []

    def leave(value):
        values.append(value)
        sys.exit("mine")

    with pytest.raises(SystemExit, match="mine"), CallbackQueue([leave]) as callbacks:
        callbacks.queue.put((False, 1))
        callbacks.queue.put((False, 2))
    assert values == [1, 2]


def test_the_trainer_that_ray_ships_for_older_versions_is_refused_with_the_name_of_ours():
    with pytest.raises(ImportError, match=r"write from horovod\.ray\.train import HorovodConfig, HorovodTrainer"):
        importlib.import_module("ray.train.horovod")
    assert not hasattr(importlib.import_module("horovod.ray.runner"), "another")
