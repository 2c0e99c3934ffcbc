"""The plain Jobs of examples/kubernetes: they agree with themselves and with our programs, and their commands work as containers on test hosts."""

import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from netns import Cluster
from pods import EXAMPLE, OPEN_ENDED, Pod, documents, only_container, probe
from training_log import TrainingLog

RENDEZVOUS, WORKERS = documents("base/rendezvous.yaml"), documents("base/workers.yaml")


def pod_of(manifest):
    return manifest["Job"]["spec"]["template"]


def container_of(manifest):
    return only_container(pod_of(manifest))


def command_of(manifest):
    container = container_of(manifest)
    return [*container["command"], *container["args"]]


def option(manifest, name):
    (value,) = re.findall(rf"{name}=(\S+)", "\n".join(command_of(manifest)))
    return value


@pytest.mark.parametrize("manifest, program", [(RENDEZVOUS, "horovod-rendezvousd"), (WORKERS, "horovod-agent")])
def test_every_flag_is_known(manifest, program):
    text = "\n".join(command_of(manifest))
    assert program in text
    known = subprocess.run([program, "--help"], check=True, capture_output=True, text=True, timeout=60).stdout
    flags = re.findall(r"(?<!\S)(--[a-z-]+)=", text)
    assert flags and [flag for flag in flags if flag not in re.findall(r"--[a-z-]+", known)] == []


@pytest.mark.parametrize("manifest", [RENDEZVOUS, WORKERS])
def test_volumes_are_mounted_where_the_command_looks(manifest):
    volumes = {volume["name"] for volume in pod_of(manifest)["spec"]["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container_of(manifest)["volumeMounts"]}
    assert set(mounts) == volumes
    for path in set(mounts.values()) - {"/dev/shm"}:
        assert f"{path}/" in "\n".join(command_of(manifest))


def test_service_leads_to_the_daemon():
    service = RENDEZVOUS["Service"]
    assert service["spec"]["selector"].items() <= pod_of(RENDEZVOUS)["metadata"]["labels"].items()
    ports = {port["name"]: port["containerPort"] for port in container_of(RENDEZVOUS)["ports"]}
    (port,) = service["spec"]["ports"]
    assert option(WORKERS, "--join") == f"{service['metadata']['name']}:{port['port']}"
    assert option(RENDEZVOUS, "--listen").endswith(f":{ports[port['targetPort']]}")
    assert option(RENDEZVOUS, "--metrics").endswith(f":{ports['metrics']}")
    assert pod_of(RENDEZVOUS)["metadata"]["annotations"]["prometheus.io/port"] == str(ports["metrics"])
    for name in ("readinessProbe", "livenessProbe"):
        assert container_of(RENDEZVOUS)[name]["httpGet"]["port"] in ports


def test_state_and_secret_are_those_of_the_readme():
    (state,) = pod_of(RENDEZVOUS)["spec"]["volumes"]
    assert state["persistentVolumeClaim"]["claimName"] == RENDEZVOUS["PersistentVolumeClaim"]["metadata"]["name"]
    secret = pod_of(WORKERS)["spec"]["volumes"][0]["secret"]["secretName"]
    readme = (EXAMPLE / "README.md").read_text()
    name = RENDEZVOUS["Job"]["metadata"]["name"]
    token = option(RENDEZVOUS, "--token-file")
    assert (
        f"kubectl exec job/{name} -- cat {token} | kubectl create secret generic {secret} --from-file=token=/dev/stdin"
        in readme
    )


def test_pods_have_the_time_to_drain():
    grace = int(option(WORKERS, "--grace"))
    assert grace == int(option(RENDEZVOUS, "--grace"))
    assert pod_of(WORKERS)["spec"]["terminationGracePeriodSeconds"] > grace + 5


def test_training_with_pods_that_come_and_go(tmp_path):
    for name in ("state", "secret"):
        (tmp_path / name).mkdir()
    log, end = tmp_path / "log", tmp_path / "end"
    log.touch()
    # A pod's host name is new each time; that of the daemon is the Service's.
    with Cluster(["training", "pod-1", "pod-2", "pod-3"], tmp_path) as cluster:

        def start(host, manifest):
            folders = {f"/{name}": tmp_path / name for name in ("state", "secret")}
            return Pod(cluster[host], pod_of(manifest), folders, log, [*OPEN_ENDED, "--end-file", end])

        output = cluster["training"].start_command(["tail", "-n", "+1", "-f", log]).stdout
        training = TrainingLog(output)
        daemon = start("training", RENDEZVOUS)
        output.wait_for(r"^\S+:4711$", 60)
        secret = Path(shutil.copy(tmp_path / "state/token", tmp_path / "secret"))
        secret.chmod(0o440)  # as it is for a pod that has an fsGroup
        prometheus = pod_of(RENDEZVOUS)["metadata"]["annotations"]["prometheus.io/path"]
        probe(
            cluster["training"], pod_of(RENDEZVOUS), prometheus
        )  # the README waits for a ready daemon before there are workers
        first, second = start("pod-1", WORKERS), start("pod-2", WORKERS)
        training.wait_until(lambda: training.trains_with(4), 120, "a world of 4")

        daemon.signal(signal.SIGTERM)  # its pod is evicted
        assert daemon.running.wait() == 143
        daemon = start("training", RENDEZVOUS)
        output.wait_for(r"^\S+:4711$", 60, count=2)

        second.signal(signal.SIGTERM)
        training.wait_until(lambda: training.trains_with(2), 120, "a world of 2")
        assert second.running.wait(120) == 143
        third = start("pod-3", WORKERS)
        training.wait_until(lambda: training.trains_with(4), 120, "another world of 4")
        end.touch()

        assert [container.running.wait(180) for container in (first, third, daemon)] == [0, 0, 0], output.text[-5000:]
        training.wait_until(lambda: len(training.all("done")) == 4, 60, "the last words of 4 workers")
        assert training.check_samples(240, training.epochs()) == 0, "nothing was rolled back"
        assert not (tmp_path / "state/token").exists()
