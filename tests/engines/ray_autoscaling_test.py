"""horovod.ray with elastic jobs on a cluster with an autoscaler: Ray's own, whose nodes are further raylets on this machine."""

import json
import os
import socket
import sys
import time
from pathlib import Path

import pytest
import ray
import ray.cloudpickle

from horovod.ray import RayExecutor
from horovod.ray.demand import Demand
from processes import Running, pids_with, wait_until_none

ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers can't import this module
STORE = 100 * 2**20  # bytes, of objects
MARK = f"RAY_AUTOSCALING_TEST={os.getpid()}"
HEAD = "f" * 51 + "00000"


def free_address():
    host = ray.util.get_node_ip_address()
    with socket.socket() as probe:
        probe.bind((host, 0))
        return f"{host}:{probe.getsockname()[1]}"


def configuration(address):
    """Of a cluster whose head has one CPU, with at most three further nodes of one CPU each."""
    provider = {
        "type": "fake_multinode",
        "gcs_address": address,
        "head_node_id": HEAD,
        "use_node_id_as_ip": True,
        "launch_multiple": True,
        "disable_node_updaters": True,
        "disable_launch_config_check": True,
        "foreground_node_launch": True,
    }
    resources = {"CPU": 1, "object_store_memory": STORE}
    head, worker = (
        {"resources": resources, "node_config": {}, "min_workers": 0, "max_workers": most} for most in (0, 3)
    )
    commands = ["initialization", "setup", "head_setup", "worker_setup", "head_start_ray", "worker_start_ray"]
    return {
        "cluster_name": "fake",
        "max_workers": 3,
        "upscaling_speed": 100.0,
        "idle_timeout_minutes": 0.1,
        "provider": provider,
        "available_node_types": {"ray.head.default": head, "worker": worker},
        "head_node_type": "ray.head.default",
        "auth": {},
        "file_mounts": {},
        "cluster_synced_files": [],
        "file_mounts_sync_continuously": False,
        "rsync_exclude": [],
        "rsync_filter": [],
        **{f"{name}_commands": [] for name in commands},
    }


@pytest.fixture(scope="module", autouse=True)
def cluster(ray_folder, tmp_path_factory):
    address = free_address()
    file = tmp_path_factory.mktemp("autoscaler") / "cluster.json"
    file.write_text(json.dumps(configuration(address)))
    name, value = MARK.split("=")
    own = {"RAY_FAKE_CLUSTER": "1", "RAY_OVERRIDE_NODE_ID_FOR_TESTING": HEAD, "RAY_CLOUD_INSTANCE_ID": HEAD}
    flags = ["--num-cpus=1", f"--object-store-memory={STORE}", "--include-dashboard=false", f"--temp-dir={ray_folder}"]
    head = Running(
        [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", f"--port={address.split(':')[1]}"]
        + [*flags, f"--autoscaling-config={file}"],
        env={**os.environ, **own, name: value, "AUTOSCALER_UPDATE_INTERVAL_S": "1", "RAY_enable_autoscaler_v2": "0"},
    )
    head.stdout.wait_for("Ray runtime started", 60)
    ray.init(address=address)
    yield
    ray.shutdown()
    head.end()
    for pid in pids_with(MARK.encode() + b"\0"):  # the autoscaler's nodes
        os.kill(pid, 9)
    assert wait_until_none(lambda: pids_with(MARK.encode() + b"\0")) == []
    for folder in (ray_folder, "/tmp/ray"):  # or ray.init() would look for it
        Path(folder, "ray_current_cluster").unlink(missing_ok=True)


def living_nodes():
    return [node for node in ray.nodes() if node["Alive"]]


def test_a_job_asks_for_nodes_up_to_max_workers_and_gives_them_back(cluster):
    def train(end):
        import numpy

        import horovod.numpy as hvd

        hvd.init()
        state = hvd.elastic.State(is_late=0.0)

        @hvd.elastic.run
        def loop(state):
            while hvd.size() < 3 and not state.is_late:
                late = numpy.array([float(time.time() > end)])
                state.is_late = float(hvd.allreduce(late, op=hvd.Max)[0])
                state.commit()

        loop(state)
        return hvd.size()

    assert len(living_nodes()) == 1
    executor = RayExecutor(RayExecutor.create_settings(), min_workers=1, max_workers=3, elastic_timeout=120)
    executor.start()
    assert executor.run(train, [time.time() + 90]) == [3, 3, 3]
    groups = ray.util.placement_group_table().values()
    assert {group["state"] for group in groups} == {"REMOVED"}, "it asks for nothing any more"


def test_what_is_asked_for_is_given_up_where_there_is_room(cluster):
    demand = Demand({"CPU": 100})
    try:
        demand.ask(3)
        groups = list(demand._groups)
        assert len(groups) == 3
        demand.ask(2)
        assert demand._groups == groups[:2], "waiting groups stay"
    finally:
        demand.ask(0)
    assert demand._groups == []
    demand = Demand({"CPU": 0.001})
    demand.ask(1)
    (first,) = demand._groups
    assert first.wait(60)
    demand.ask(1)
    try:
        assert demand._groups != [first]
    finally:
        demand.ask(0)
