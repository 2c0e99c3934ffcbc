"""The manifests of examples/kubernetes for operators: JobSet, Kubeflow Trainer, MPI Operator. What these make of them is played
here: names, labels, folders, and what a TrainJob changes in its runtime. The containers' commands are those of the manifests."""

import copy
import os
import re
import shutil
import signal
import subprocess

import pytest

from netns import Cluster
from pods import EXAMPLE, OPEN_ENDED, Pod, documents, only_container, probe, replicated_jobs
from training_log import TrainingLog

NAME = "training"
DAEMON = f"{NAME}-rendezvous-0-0.{NAME}"  # JobSet's name of a pod, in its subdomain
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"


def of_job_set():
    return replicated_jobs(documents("jobset/jobset.yaml")["JobSet"]["spec"])


def of_train_job():
    """As Trainer puts the two together: image, command, args, variables and number of the nodes are the TrainJob's, where it has some."""
    runtime = documents("trainer/runtime.yaml")["ClusterTrainingRuntime"]
    train_job = documents("trainer/trainjob.yaml")["TrainJob"]
    assert train_job["spec"]["runtimeRef"] == {"name": runtime["metadata"]["name"]}
    trainer = train_job["spec"]["trainer"]
    jobs = replicated_jobs(copy.deepcopy(runtime["spec"]["template"]["spec"]))
    (node,) = [job for job in jobs.values() if job.get("metadata", {}).get("labels", {}).get(STEP) == "trainer"]
    node["spec"].update(parallelism=trainer["numNodes"], completions=trainer["numNodes"])
    container = only_container(node["spec"]["template"])
    assert container["name"] == "node"
    container.update({key: trainer[key] for key in ("image", "command", "args") if key in trainer})
    given = {variable["name"]: variable for variable in trainer.get("env", ())}
    container["env"] = [given.pop(variable["name"], variable) for variable in container["env"]] + list(given.values())
    return jobs


JOBS = {"JobSet": of_job_set, "TrainJob": of_train_job}


@pytest.fixture(params=JOBS)
def jobs(request):
    return JOBS[request.param]()


def test_every_flag_is_known(jobs):
    for name, program in (("rendezvous", "horovod-rendezvousd"), ("node", "horovod-agent")):
        container = only_container(jobs[name]["spec"]["template"])
        text = "\n".join([*container["command"], *container["args"]])
        assert program in text
        known = subprocess.run([program, "--help"], check=True, capture_output=True, text=True, timeout=60).stdout
        flags = re.findall(r"(?<!\S)(--[a-z-]+)=", text)
        assert flags and [flag for flag in flags if flag not in re.findall(r"--[a-z-]+", known)] == []


def test_volumes_are_mounted_where_the_command_looks(jobs):
    for job in jobs.values():
        template = job["spec"]["template"]
        mounts = {mount["name"]: mount["mountPath"] for mount in only_container(template)["volumeMounts"]}
        assert set(mounts) == {volume["name"] for volume in template["spec"]["volumes"]}
        assert mounts["jobs"] == "/job"


@pytest.mark.parametrize("folder, kind", [("jobset/jobset", "JobSet"), ("trainer/runtime", "ClusterTrainingRuntime")])
def test_claim_is_the_one_beside_it(folder, kind):
    claim = documents(f"{folder.split('/')[0]}/claim.yaml")["PersistentVolumeClaim"]["metadata"]["name"]
    text = (EXAMPLE / f"{folder}.yaml").read_text()
    assert set(re.findall(r"claimName: (\w+)", text)) == {claim}


def test_nodes_wait_for_the_daemon_and_the_daemons_end_is_the_end():
    for spec in (
        documents("jobset/jobset.yaml")["JobSet"]["spec"],
        documents("trainer/runtime.yaml")["ClusterTrainingRuntime"]["spec"]["template"]["spec"],
    ):
        first, second = spec["replicatedJobs"]
        assert (first["name"], second["name"]) == ("rendezvous", "node")
        assert second["dependsOn"] == [{"name": "rendezvous", "status": "Ready"}]
        assert spec["successPolicy"] == {"operator": "All", "targetReplicatedJobs": ["rendezvous"]}
        grace = second["template"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
        assert grace > 60 + 5


class Hosts:
    """The cluster's DNS: names beside those of the hosts."""

    def __init__(self, cluster):
        self._file = cluster.directory / "hosts"  # in all hosts' /etc
        self._own = self._file.read_text()

    def set(self, names):
        self._file.write_text(self._own + "".join(f"{host.address} {name}\n" for name, host in names.items()))


def fields(pod, uid="one"):
    return {
        "metadata.name": pod,
        "metadata.labels['jobset.sigs.k8s.io/jobset-name']": NAME,
        "metadata.labels['batch.kubernetes.io/controller-uid']": uid,
    }


def test_training_with_pods_that_come_and_go_and_a_daemon_that_moves(jobs, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    log, end = tmp_path / "log", tmp_path / "end"
    log.touch()
    with Cluster(["daemon-1", "daemon-2", "pod-1", "pod-2", "pod-3"], tmp_path) as cluster:
        names = Hosts(cluster)

        def start(host, job, pod, **more):
            template = jobs[job]["spec"]["template"]
            return Pod(
                cluster[host], template, {"/job": shared}, log, [*OPEN_ENDED, "--end-file", end], fields(pod, **more)
            )

        output = cluster["pod-1"].start_command(["tail", "-n", "+1", "-f", log]).stdout
        training = TrainingLog(output)
        names.set({DAEMON: cluster["daemon-1"]})
        daemon = start("daemon-1", "rendezvous", "r-0-0-x")
        output.wait_for(r"^\S+:4711$", 60)
        probe(cluster["daemon-1"], jobs["rendezvous"]["spec"]["template"])  # before it, there are no nodes
        first, second = start("pod-1", "node", "n-0-a"), start("pod-2", "node", "n-0-b")
        training.wait_until(lambda: training.trains_with(4) and training.last_step() > 5, 120, "a world of 4")

        daemon.signal(signal.SIGTERM)  # its pod is evicted; the next one is elsewhere
        assert daemon.running.wait() == 143
        step = training.last_step()
        names.set({DAEMON: cluster["daemon-2"]})
        daemon = start("daemon-2", "rendezvous", "r-0-0-y")
        output.wait_for(r"^\S+:4711$", 60, count=2)
        training.wait_until(lambda: training.last_step() > step, 120, "it trains on")

        second.signal(signal.SIGTERM)
        training.wait_until(lambda: training.trains_with(2), 120, "a world of 2")
        assert second.running.wait(120) == 143
        third = start("pod-3", "node", "n-0-c")
        training.wait_until(lambda: training.trains_with(4), 120, "another world of 4")
        end.touch()

        assert [pod.running.wait(600) for pod in (first, third, daemon)] == [0, 0, 0], output.text[-5000:]
        training.wait_until(lambda: len(training.all("done")) == 4, 60, "the last words of 4 workers")
        assert training.check_samples(240, training.epochs()) == 0, "nothing was rolled back"

        # The next training of this name.
        daemon = start("daemon-2", "rendezvous", "r-0-0-z", uid="two")
        output.wait_for(r"^\S+:4711$", 60, count=3)
        daemon.signal(signal.SIGINT)
        assert daemon.running.wait() == 130


# MPI Operator.

# What it tells Open MPI, and that the launcher has no GPUs.
OPERATORS_VARIABLES = {
    "K_MPI_JOB_ROLE": "launcher",
    "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
    "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
    "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
    "OMPI_MCA_orte_set_default_slots": "2",
    "NVIDIA_VISIBLE_DEVICES": "",
    "NVIDIA_DRIVER_CAPABILITIES": "",
}


def worker(index):
    return f"{NAME}-worker-{index}.{NAME}.default.svc"


class MpiJob:
    """The launcher of an MPIJob on a test host, and what the operator makes beside it: files, names, keys."""

    def __init__(self, manifest, cluster, directory, training):
        job = documents(f"mpijob/{manifest}")["MPIJob"]
        assert job["metadata"]["name"] == NAME
        spec = job["spec"]
        self.slots, self.replicas = spec["slotsPerWorker"], spec["mpiReplicaSpecs"]["Worker"]["replicas"]
        self._folder = directory / "etc_mpi"
        self._folder.mkdir()
        hosts = "".join(f"{worker(index)} slots={self.slots}\n" for index in range(self.replicas))
        self._write("hostfile", hosts, 0o444)
        self.discover(range(self.replicas))
        Hosts(cluster).set({worker(index): cluster[f"worker-{index}"] for index in range(3)})
        ssh = cluster["launcher"].home / ".ssh"
        (ssh / "known_hosts").unlink()
        shutil.copy(EXAMPLE / "mpijob/ssh.conf", ssh / "config")
        log = directory / "log"
        log.touch()
        template = spec["mpiReplicaSpecs"]["Launcher"]["template"]
        self.launcher = Pod(
            cluster["launcher"], template, {"/etc/mpi": self._folder}, log, training, env=OPERATORS_VARIABLES
        )
        self.output = cluster["launcher"].start_command(["tail", "-n", "+1", "-f", log]).stdout

    def discover(self, running):
        """The operator's script, of these workers."""
        self._write("discover_hosts.sh", "#!/bin/sh\n" + "".join(f"echo {worker(index)}\n" for index in running), 0o555)

    def _write(self, name, text, mode):
        new = self._folder / f"..{name}"
        new.write_text(text)
        new.chmod(mode)
        os.replace(new, self._folder / name)


HOSTS = ["launcher", "worker-0", "worker-1", "worker-2"]


def test_mpi_job_with_the_operators_host_file(tmp_path):
    with Cluster(HOSTS, tmp_path) as cluster:
        job = MpiJob("mpijob.yaml", cluster, tmp_path, ["--epochs", 1])
        assert job.launcher.running.wait(120) == 0, job.output.text
        log = TrainingLog(job.output)
        log.wait_until(lambda: len(log.all("done")) == 4, 60, "the last words of 4 workers")
        assert {entry["host"] for entry in log.all("ready")} == {"worker-0", "worker-1"}


def test_elastic_mpi_job_with_the_operators_script(tmp_path):
    with Cluster(HOSTS, tmp_path) as cluster:
        end = tmp_path / "end"
        job = MpiJob("elastic.yaml", cluster, tmp_path, [*OPEN_ENDED, "--end-file", end])
        log = TrainingLog(job.output)
        log.wait_until(lambda: log.trains_with(4), 90, "a world of 4")
        job.discover([0, 1, 2])
        log.wait_until(lambda: log.trains_with(6), 90, "a world of 6")
        job.discover([0, 2])
        log.wait_until(lambda: log.trains_with(4), 90, "a world of 4 again")
        end.touch()
        assert job.launcher.running.wait(120) == 0, job.output.text[-5000:]
        assert log.check_samples(240, log.epochs()) == 0, "nothing was rolled back"
