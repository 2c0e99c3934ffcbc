"""An elastic job on this machine in which failpoints act: a daemon that keeps its state, and the agents of two hosts, each of which is
started again when it has ended before its time.

job = FailpointJob(directory, "daemon.*=crash")
job.train(size=3)
job.end()
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from polling import poll_until
from processes import Running, pids_with, program, wait_until_none

SCRIPT = Path(__file__).resolve().parent.parent / "e2e" / "jobs" / "failpoints.py"
VARIABLE = "HOROVOD_FAILPOINTS"
SLOTS = {"a": 1, "b": 2}
PATIENCE_S = 90  # for one phase of a job that is harmed in it again and again
_LISTERS = {
    "daemon": ["horovod-rendezvousd", "--listen", "127.0.0.1:0", "--token-file", "none", "--np", "1"],
    "agent": ["horovod-agent", "--join", "127.0.0.1:1", "--token-file", "none", "--", "true"],
    "worker": [sys.executable, "-c", "import horovod.numpy"],
}
_LIMITS = ["--max-failures", "1000000/10m", "--max-failures-in-a-row", "0", "--blacklist-cooldown-range", "1", "1"]
_REFUSED = 2
_MARK = "FAILPOINT_JOB"


def failpoints(program):
    """The points of a program, as it lists them, and whether something can fail there."""
    listed = subprocess.run(
        _LISTERS[program], env={**os.environ, VARIABLE: "list"}, stdout=subprocess.PIPE, text=True, check=True
    )
    return {name: bool(error) for name, _, error in (line.partition(" ") for line in listed.stdout.splitlines())}


def free_ports(count):
    """Ports of this machine that nobody has now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class FailpointJob:
    """`points`: the value of the variable, for all processes, without its `once`. `failure`: what the daemon says of the job if it may fail."""

    def __init__(self, directory, points, etcd=None, failure=None):
        self.directory = directory
        self.marks, self.logs = directory / "marks", directory / "logs"
        self.marks.mkdir()
        self.logs.mkdir()
        self.agents_lost = []  # when, and on which host
        self._environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            # Over TCP ranks connect one after the other.
            "HOROVOD_SHARED_MEMORY": "0",
            _MARK: str(directory),
            VARIABLE: f"{points};once={self.marks}",
        }
        self._failure = failure
        self._etcd = etcd
        # etcd keeps no addresses, so that the next daemon has to be given this one's.
        self._listen = f"127.0.0.1:{free_ports(1)[0] if etcd else 0}"
        self._ended = []  # processes that have ended
        self._ends = False  # the workers were told to end
        self.daemon, self.agents = None, {}
        self._wanted = set()  # the hosts that are to have an agent
        self._start_daemon()
        self.await_(lambda: self.address, "a daemon that listens")
        for host in SLOTS:
            self.start_agent(host)

    # Processes.

    def _start(self, *command):
        return Running([str(word) for word in command], env=self._environment, cwd=self.directory)

    def _start_daemon(self):
        kept_in = ["--state-dir", "state"] if self._etcd is None else ["--etcd", self._etcd, "--job", "job"]
        self.daemon = self._start(
            "horovod-rendezvousd", "--listen", self._listen, "--token-file", "token", "--event-log", "events",
            "--np", "3", "--min-np", "1", "--reattach-timeout", "8", *_LIMITS, *kept_in,
        )  # fmt: skip

    def start_agent(self, host):
        self._wanted.add(host)
        self.agents[host] = self._start(
            "horovod-agent", "--join", self.address, "--token-file", "token", "--host", host, "--machine", host,
            "--grace", "2", "--start-timeout", "20", "--slots", SLOTS[host], "--", sys.executable, SCRIPT, self.directory, host,
        )  # fmt: skip

    @property
    def address(self):
        for daemon in filter(None, [*self._ended, self.daemon]):
            if daemon.stdout.text.endswith("\n") and daemon.popen.args[0] == "horovod-rendezvousd":
                return daemon.stdout.text.split()[0]
        return ""

    @property
    def is_over(self):
        code = self.daemon.popen.poll()
        if code is None or code <= 0 or self._failure is None:
            return code == 0
        return self._failure in self.daemon.stderr.text.splitlines()[-1]

    def _replace_ended(self):
        """Starts again what has ended although nobody wanted it, as a supervisor does."""
        code = self.daemon.popen.poll()
        if code is not None and not self.is_over:
            # Else it would refuse again and again.
            assert code != _REFUSED or "failpoint " in self.daemon.stderr.text, self.everything()
            self._ended.append(self.daemon)
            self._start_daemon()
        for host, agent in list(self.agents.items()):
            if agent.popen.poll() is None:
                continue
            del self.agents[host]
            self._ended.append(agent)
            code = agent.popen.returncode
            if code != 0:
                self.agents_lost.append((time.monotonic(), host))
            has_ended = self.is_over or (code == 0 and self._ends)
            if host in self._wanted and not has_ended:
                self.start_agent(host)

    def await_(self, condition, what):
        def holds():
            self._replace_ended()
            return condition()

        try:
            poll_until(holds, what, PATIENCE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.everything()}") from None

    def everything(self):
        processes = [*self._ended, self.daemon, *self.agents.values()]
        said = "\n".join(
            f"{process.popen.args[0]} {process.pid} ({process.popen.poll()})\n{process.everything()}"
            for process in processes
        )
        return f"{said[-40000:]}\n{sorted(path.name for path in self.marks.iterdir())}"

    # What the workers have logged.

    def _lines(self):
        for path in self.logs.iterdir():
            for line in path.read_text().splitlines(keepends=True):
                if line.endswith("\n"):
                    yield path.name, line.split()

    def worlds(self):
        """The worlds in which somebody has begun: their (rank, size, step of the beginning)s."""
        worlds = {}
        for _, words in self._lines():
            if words[0] == "world":
                worlds.setdefault(int(words[1]), []).append(tuple(map(int, words[2:])))
        return worlds

    def newest_world(self):
        return max(self.worlds(), default=0)

    def last_step(self):
        return max((int(words[2]) for _, words in self._lines() if words[1] == "returned"), default=0)

    def events(self, kind, host):
        with contextlib.suppress(FileNotFoundError):
            lines = (self.directory / "events").read_text().splitlines()
            found = [json.loads(line) for line in lines if f'"{kind}"' in line]
            return sum(event["kind"] == kind and event.get("host") == host for event in found)
        return 0

    # Phases.

    def train(self, size, after=0):
        """Until a world of this size, later than world `after`, has made some commits."""
        self.await_(lambda: self._trains(size, after), f"a world of {size} after world {after}")

    def _trains(self, size, after):
        newest = self.newest_world()
        if newest <= after:
            return False
        members = self.worlds()[newest]
        return members[0][1] == size and self.last_step() >= members[0][2] + 3 and self.last_step() > 3

    def kill_worker(self, host):
        """Any one there; more than that if they have just started."""
        self.await_(lambda: self._workers(host), f"a worker on {host}")
        for pid in self._workers(host)[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _workers(self, host):
        running = {int(path.name.partition(".")[2]) for path in self.logs.glob(f"{host}.*")}
        return sorted(pid for pid in running if "python" in program(pid))

    def kill_daemon(self):
        self.daemon.popen.kill()
        self.daemon.popen.wait()

    def drain(self, host):
        """Until its agent has ended. It is not started again."""
        self._wanted.discard(host)
        agent = self.agents.get(host)
        if agent is not None and agent.popen.poll() is None:
            agent.signal(signal.SIGTERM)
        self.await_(lambda: host not in self.agents, f"the end of {host}")

    def kill_agent(self, host):
        """The agent's process, as the kernel would kill it; its guard ends then. It is not started again."""
        self._wanted.discard(host)
        for pid in pids_with(f"{_MARK}={self.directory}\0".encode()):
            if _is_agent_of(pid, host):
                os.kill(pid, signal.SIGKILL)
        self.await_(lambda: host not in self.agents, f"the end of {host}")

    def shut(self, host):
        """Lets the workers of this host wait before hvd.init()."""
        (self.directory / f"gate-{host}").touch()

    def open(self, host):
        (self.directory / f"gate-{host}").unlink()

    def end(self):
        """Until the job is over, which is to succeed unless it may fail, and all agents have ended."""
        self._ends = True
        (self.directory / "end").touch()
        self.await_(lambda: self.is_over and not self.agents, "the end of the job")

    def close(self):
        """Ends what runs still. Nothing that came of it may be left."""
        for running in [self.daemon, *self.agents.values()]:
            running.end()
        left = wait_until_none(lambda: pids_with(f"{_MARK}={self.directory}\0".encode()))
        assert left == []


def _is_agent_of(pid, host):
    """Whether this is the agent of that host, and not its guard, which has the same program."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        is_agent = Path(f"/proc/{pid}/comm").read_text() == "horovod-agent\n"
        return is_agent and words[words.index("--host") + 1] == host
    return False
