"""An etcd cluster on test hosts, and elastic jobs that are kept in it."""

import signal
import subprocess
import sys
from typing import NamedTuple

from elastic_job import TRAIN, OpenEnded, Training
from processes import GUARD

CLIENTS, PEERS, LISTEN = 2379, 2380, 7000


class Certificate(NamedTuple):
    """Paths."""

    ca: str
    certificate: str
    key: str


def make_certificate(directory, *addresses):
    """Makes one self-signed certificate for all servers and clients."""
    key, certificate = str(directory / "etcd.key"), str(directory / "etcd.pem")
    names = "subjectAltName=" + ",".join(f"IP:{address}" for address in addresses)
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=etcd"
    subprocess.run(
        [*command.split(), "-addext", names, "-keyout", key, "-out", certificate], check=True, capture_output=True
    )
    return Certificate(certificate, certificate, key)


class EtcdNodes:
    """A node on each of these hosts, with its data in the cluster's directory."""

    def __init__(self, cluster, names, *flags, certificate=None):
        self.hosts = hosts = [cluster[name] for name in names]
        self._directory = cluster.directory
        self._flags = list(flags)
        self._ctl_flags = []
        self._scheme = "http"
        self.endpoints = ",".join(f"{host.address}:{CLIENTS}" for host in hosts)
        if certificate:
            self._scheme = "https"
            self._flags += ["--client-cert-auth", "--trusted-ca-file", certificate.ca,
                            "--cert-file", certificate.certificate, "--key-file", certificate.key]  # fmt: skip
            self._ctl_flags = ["--cacert", certificate.ca, "--cert", certificate.certificate, "--key", certificate.key]
        self._running = {}
        for host in hosts:
            self.start(host)
        self.wait()

    def start(self, host):
        """For the first time, or again with its data."""
        clients, peers = f"{self._scheme}://{host.address}:{CLIENTS}", f"http://{host.address}:{PEERS}"
        everybody = ",".join(f"{other.name}=http://{other.address}:{PEERS}" for other in self.hosts)
        self._running[host.name] = host.start_command(
            ["etcd", "--name", host.name, "--data-dir", self._directory / f"etcd-{host.name}", "--log-level", "error",
             "--listen-client-urls", clients, "--advertise-client-urls", clients,
             "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
             "--initial-cluster", everybody, *self._flags]
        )  # fmt: skip

    def wait(self):
        """Waits until etcd accepts writes."""
        assert self.ctl("put", "ready", "yes", "--command-timeout=60s") == "OK"

    def ctl(self, *words):
        command = ["etcdctl", "--endpoints", self.endpoints, *self._ctl_flags, *words]
        ran = self.hosts[0].run(command, 70, env={"ETCDCTL_API": "3"})
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    def leader(self):
        """The host of the node that leads."""
        lines = self.ctl("endpoint", "status", "--write-out=simple").splitlines()
        address = next(line.split(",")[0] for line in lines if line.split(", ")[4] == "true")
        return next(host for host in self.hosts if address.startswith(f"{host.address}:"))

    def kill(self, *hosts):
        for host in hosts or self.hosts:
            self._running[host.name].signal(signal.SIGKILL)
            self._running[host.name].wait()


ASK = """
import sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=60).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""


class EtcdJob(OpenEnded, Training):
    """Daemons on some hosts, one of them the leader, and agents with two slots on others."""

    def __init__(self, cluster, nodes, daemons=("d1", "d2"), agents=("a", "b"), flags=()):
        self._flags = ["--np", 2 * len(agents), "--min-np", "1", "--etcd", nodes.endpoints, "--job", "train", *flags]
        self._output = cluster.directory / "output"
        self._output.touch()
        self.daemons = {}
        super().__init__(cluster, cluster[agents[0]].start_command(["tail", "-n", "+1", "-f", self._output]))
        self.cluster = cluster
        self._script_flags = self.flags(cluster)
        self._candidates = ",".join(f"{cluster[name].address}:{LISTEN}" for name in daemons)
        for name in daemons:
            self.start_daemon(name)
            if len(self.daemons) == 1:
                self.wait_for_leader(name)
        self.agents = {name: self._start_agent(cluster[name]) for name in agents}

    def start_daemon(self, name):
        """Starts a daemon, which stands by if another one leads."""
        host = self.cluster[name]
        self.daemons[name] = host.start_command(
            ["horovod-rendezvousd", "--listen", f"{host.address}:{LISTEN}", *self._flags, "--standby",
             "--token-file", self.cluster.directory / f"token-{name}",
             "--event-log", self.cluster.directory / f"events-{name}", "--metrics", "127.0.0.1:0"]
        )  # fmt: skip

    def page(self, name, path):
        """The HTTP status code of a page of a daemon."""
        url = self.daemons[name].stderr.wait_for(r"metrics at (http://\S+)/metrics").group(1)
        asked = self.cluster[name].run([sys.executable, "-c", ASK, url + path])
        assert asked.returncode == 0, asked.stderr
        return int(asked.stdout)

    def _start_agent(self, host):
        agent = ["horovod-agent", "--join", self._candidates, "--token-file", self.cluster.directory / "token-d1",
                 "--slots", "2", "--host", host.name, "--", "python", TRAIN, "--framework", "numpy",
                 *self._script_flags]  # fmt: skip
        return host.start_command(
            ["sh", "-c", 'exec "$@" >>"$0" 2>&1', self._output, *agent], env={"OMP_NUM_THREADS": "1"}
        )

    def explain(self):
        said = [f"{name}: {daemon.everything()}" for name, daemon in self.daemons.items()]
        return "\n".join([*said, self._output.read_text()[-3000:]])

    def wait_for_leader(self, name, count=1, timeout=GUARD):
        self.daemons[name].stdout.wait_for(r"^\S+:\d+$", timeout, count=count)

    def times_back(self):
        """How often an agent has found a daemon again."""
        return self.running.stdout.text.count("the rendezvous daemon is there again")

    def wait_until_back(self, before, timeout=60):
        """Waits until each agent has found a daemon again since then."""
        self.running.stdout.wait_for("the rendezvous daemon is there again", timeout, count=before + len(self.agents))

    def events(self, name):
        return (self.cluster.directory / f"events-{name}").read_text().splitlines()

    def check_steps(self):
        """Checks that no step was lost or repeated."""
        steps = [entry["step"] for entry in self.complete_log().all("step")]
        assert sorted(set(steps)) == list(range(1, max(steps) + 1)), steps
        assert all(steps.count(step) <= 4 for step in set(steps)), steps

    def finish(self, timeout=120):
        """Ends the training, which is to succeed and add up. Every daemon gives its exit code."""
        self.tell_to_end()
        codes = {name: daemon.wait(timeout) for name, daemon in self.daemons.items()}
        assert set(codes.values()) == {0}, self.explain()
        assert {agent.wait(60) for agent in self.agents.values()} == {0}, self._output.read_text()
        rolled_back = self.check()
        self.running.signal(signal.SIGTERM)
        self.running.wait()
        left = [self.cluster[name].leftovers() for name in (*self.daemons, *self.agents)]
        assert not any(left), left
        return rolled_back
