"""The jobs to which tools/faults does harm: their processes, found by the directory in their command lines."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

WORKER = Path(__file__).resolve().parent / "worker.py"
LIMITS = ("--max-failures", "1000000/10m", "--max-failures-in-a-row", "0")


def pids_of(*words):
    """The processes of this user whose command line has all these words in one argument each, oldest first."""
    found = []
    for directory in Path("/proc").iterdir():
        try:
            line = (
                (directory / "cmdline").read_bytes().decode(errors="replace").split("\0")
                if directory.name.isdigit()
                else []
            )
        except OSError:
            continue
        if line and all(word in line for word in map(str, words)):
            found.append(int(directory.name))
    return sorted(found)


def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


class Job:
    """What both kinds of jobs have in common."""

    def __init__(self, directory, checkpoints):
        self.directory = directory
        self.logs = directory / "logs"
        self.logs.mkdir()
        self._output = open(directory / "output", "ab")  # noqa: SIM115 - for as long as the job runs
        self._checkpoints = [directory / "checkpoints"] if checkpoints else []
        self._started = []

    def _start(self, *command):
        words = [str(word) for word in command]
        self._started.append(
            subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._output, cwd=self.directory
            )
        )
        return self._started[-1]

    def _worker(self, host):
        return [sys.executable, WORKER, self.logs, host, *self._checkpoints]

    def workers(self):
        """Their process ids and hosts."""
        return [(pid, host) for host in self.hosts() for pid in self._workers_of(host)]

    def _workers_of(self, host):
        # An agent's own command line has these words, too.
        return [pid for pid in pids_of(WORKER, self.logs, host) if "horovod" not in _program(pid)]

    def close(self):
        for process in self._started:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + 20
        for process in self._started:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._output.close()


def _program(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""


class LocalJob(Job):
    """horovodrun on this machine: one agent, which lives as long as the job."""

    def __init__(self, directory, checkpoints, workers):
        super().__init__(directory, checkpoints)
        sizes = ["-np", min(2, workers), "--min-np", 1, "--max-np", workers, "-H", f"localhost:{workers}"]
        self._run = self._start("horovodrun", *sizes, *LIMITS, *self._worker("localhost"))

    def hosts(self):
        return ["localhost"]

    def is_alive(self):
        return self._run.poll() is None


class JoinedJob(Job):
    """A daemon that keeps its state, and agents that join it."""

    def __init__(self, directory, checkpoints, workers):
        super().__init__(directory, checkpoints)
        self._workers = workers
        self._address = "127.0.0.1:0"
        self.start_daemon()
        self.agents = {}
        for host in self.hosts():
            self.join(host)

    def hosts(self):
        return ["a", "b"]

    def start_daemon(self):
        """Starts it, again at the address that it had."""
        said = self.directory / "address"
        with open(said, "wb") as file:
            self.daemon = subprocess.Popen(
                ["horovod-rendezvousd", "--listen", "127.0.0.1:0", "--token-file", "token", "--state-dir", "state", "--min-np", "1",
                 "--max-np", str(self._workers), "-np", "1", *LIMITS],
                stdin=subprocess.DEVNULL, stdout=file, stderr=self._output, cwd=self.directory,
            )  # fmt: skip
        self._started.append(self.daemon)
        while not said.read_text().endswith("\n"):
            if self.daemon.poll() is not None:
                raise RuntimeError(f"the daemon has ended; see {self.directory}/output")
            time.sleep(0.01)
        self._address = said.read_text().split()[0]

    def join(self, host):
        flags = ["--join", self._address, "--token-file", "token", "--host", host, "--slots", self._workers // 2 or 1]
        self.agents[host] = self._start("horovod-agent", *flags, "--", *self._worker(host))

    def agent_pids(self, host):
        """Those of the agent of this host, not of its guard."""
        return [pid for pid in pids_of("--join", self.logs, host) if _program(pid) == "horovod-agent"]

    def is_alive(self):
        return True
