"""The rules of horovod.ray that need no cluster: arguments, ranks, nodes as hosts, and what an elastic job is to have where."""

import pytest
import ray

from horovod.ray import ElasticRayExecutor, RayExecutor, elastic, elastic_v2
from horovod.ray.roster import Roster
from horovod.ray.static import in_order_of_ranks


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(num_workers=1, min_workers=1), "Both `min_workers` and `num_workers` provided"),
        (dict(num_hosts=1, min_workers=1), "Both `min_workers` and `num_hosts` provided"),
        (dict(max_workers=2), "`max_workers` provided without any positive `min_workers`"),
        (dict(min_workers=3, max_workers=2), r"`max_workers` \(2\) is less than `min_workers` \(3\)"),
        (dict(num_workers=1, num_hosts=1), "One of `num_workers`, `num_hosts` and `min_workers` must be given"),
        (dict(), "One of `num_workers`, `num_hosts` and `min_workers` must be given"),
        (dict(num_workers=0), "`num_workers` must be 1 or more: Got 0"),
        (dict(min_workers=0), "`min_workers` must be 1 or more: Got 0"),
        (dict(num_workers=1, gpus_per_worker=1), "gpus_per_worker is set, but use_gpu is False"),
        (dict(num_workers=1, gpus_per_worker=-1, use_gpu=True), "gpus_per_worker must be >= 1: Got -1"),
        (dict(min_workers=1, cooldown_range=[5, 1]), r"`cooldown_range` must be \(MIN, MAX\)"),
    ],
)
def test_arguments_that_can_not_be(arguments, message):
    with pytest.raises(ValueError, match=message):
        RayExecutor(RayExecutor.create_settings(), **arguments)


def test_parts_of_horovods_that_are_not_here():
    for module, name in (("runner", "Coordinator"), ("utils", "detect_nics"), ("driver_service", "driver_service")):
        with pytest.raises(ImportError):
            exec(f"from horovod.ray.{module} import {name}")


def test_ranks_go_by_node_the_drivers_first():
    assert in_order_of_ranks(["a", "b", "a", "c", "b"], "c") == [3, 0, 2, 1, 4]
    assert in_order_of_ranks(["a", "b", "a"], "elsewhere") == [0, 2, 1]
    assert in_order_of_ranks([], "a") == []


def test_older_interface_checks_its_arguments():
    settings = ElasticRayExecutor.create_settings()
    with pytest.raises(ValueError, match="gpus_per_slot is set, but use_gpu is False"):
        ElasticRayExecutor(settings, gpus_per_slot=1)
    with pytest.raises(TypeError, match="'unknown'"):
        ElasticRayExecutor.create_settings(unknown=1)


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


def test_roster_keeps_the_cooldown_range():
    roster = Roster(cooldown=(10, 15))
    roster.note_failure("a", 0)
    assert roster.plan({"a": 1}, {}, 9).start == [] and roster.plan({"a": 1}, {}, 10).start == ["a"]
    roster.note_failure("a", 10)
    assert roster.plan({"a": 1}, {}, 24).start == [] and roster.plan({"a": 1}, {}, 25).start == ["a"]
