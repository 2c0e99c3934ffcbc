"""Pods on test hosts: the containers' own commands, taken from manifests."""

import os
import re
import shlex
from pathlib import Path

import yaml

from netns import REPOSITORY, child_of

EXAMPLE = REPOSITORY / "examples/kubernetes"
TRAIN = ["python", str(Path(__file__).resolve().parent / "scripts/elastic_train.py"), "--framework", "numpy"]

OPEN_ENDED = ["--epochs", 1000]  # of a training that continues until its --end-file exists, however slow the machine is


def documents(name):
    """Those of a manifest of the example, by their kinds."""
    return {document["kind"]: document for document in yaml.safe_load_all((EXAMPLE / name).read_text())}


def replicated_jobs(spec):
    """The Jobs' templates of a JobSet's spec, by their names."""
    return {job["name"]: job["template"] for job in spec["replicatedJobs"]}


def only_container(template):
    (container,) = template["spec"]["containers"]
    return container


def environment_of(container, fields):
    """What a container finds: `fields` are those of its pod, by their paths."""
    variables = {}
    for variable in container.get("env", ()):
        source = variable.get("valueFrom")
        variables[variable["name"]] = fields[source["fieldRef"]["fieldPath"]] if source else variable["value"]
    return variables


class Pod:
    """The command of a pod's container on a test host, as process 1 of a new process namespace.

    Args:
      template: of the pod.
      folders: by the paths where the container has them.
      training: the options of the training, which runs for train.py.
      fields: of the pod, for variables: {"metadata.name": ...}.
    """

    def __init__(self, host, template, folders, log, training, fields=None, env=None):
        container = only_container(template)
        self._folders, self._training = folders, shlex.join([*TRAIN, *map(str, training)])
        words = [self._local(word) for word in [*container["command"], *container.get("args", ())]]
        argv = self._with_training(words)
        contained = ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", *argv]
        environment = {"OMP_NUM_THREADS": "1", **environment_of(container, fields or {}), **(env or {})}
        self.running = host.start_command(["sh", "-c", 'exec "$@" >>"$0" 2>&1', log, *contained], env=environment)

    def _local(self, word):
        for path, folder in self._folders.items():
            word = re.sub(rf"(?<![\w/]){path}/", f"{folder}/", word)
        return word.replace("python train.py", self._training)

    def _with_training(self, words):
        if words[-2:] == ["python", "train.py"]:
            return [*words[:-2], *shlex.split(self._training)]
        return words

    def signal(self, number):
        """As the kubelet does: to process 1."""
        os.kill(child_of(self.running.pid), number)


def probe(host, template, *more):
    """Asks as the kubelet does for its probes, and for `more` paths: all have to say yes."""
    container = only_container(template)
    (port,) = [port["containerPort"] for port in container["ports"] if port["name"] == "metrics"]
    paths = [container[name]["httpGet"]["path"] for name in ("readinessProbe", "livenessProbe")]
    for path in [*paths, *more]:
        code = f"import urllib.request as r; print(r.urlopen('http://127.0.0.1:{port}{path}', timeout=60).status)"
        assert host.run(["python3", "-c", code]).stdout == "200\n", path
