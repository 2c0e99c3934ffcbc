"""Lets jobs of different libraries take turns: each waits for the next command of the referee, so their rounds interleave in time, and drifts in the
machine's speed affect all of them alike.

Every rank of every job connects to a socket and identifies itself; native/referee_client.h describes the protocol, and worker_*.py are the Python
side.
"""

import contextlib
import os
import signal
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path


class JobFailed(Exception):
    """A job ended, or did not answer in time; the message has its last lines."""


class Job:
    """A running contestant. Its output goes to a file that is read only when it fails."""

    def __init__(self, name, command, ranks, environment):
        self.name, self.ranks = name, ranks
        self.sockets = {}  # rank: socket
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - end() closes it
        self._process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._output,
                                         start_new_session=True)  # fmt: skip

    def failure(self, what):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(3)  # its last words come when a launcher has ended its other ranks
        self._output.seek(0)
        lines = self._output.read().decode(errors="replace").splitlines()
        return JobFailed(f"{self.name}: {what}" + "".join(f"\n    {line}" for line in lines[-8:]))

    def has_ended(self):
        return self._process.poll() is not None

    def ask(self, line, seconds):
        """Sends the line to all ranks; returns their answers in rank order."""
        for peer in self.sockets.values():
            peer.sendall(line.encode() + b"\n")
        return [self._answer(rank, time.monotonic() + seconds) for rank in range(self.ranks)]

    def _answer(self, rank, deadline):
        answer = b""
        while not answer.endswith(b"\n"):
            self.sockets[rank].settimeout(max(0.01, deadline - time.monotonic()))
            try:
                part = self.sockets[rank].recv(4096)
            except OSError as error:
                raise self.failure(f"rank {rank} does not answer: {error}") from None
            if not part:
                raise self.failure(f"rank {rank} has gone")
            answer += part
        return answer.decode().strip()

    def end(self):
        for peer in self.sockets.values():
            peer.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # whoever is left of it
        self._process.wait()
        self._output.close()


class Referee:
    """Starts contestants and times them in turn. To be used in a `with`, which ends them all."""

    def __enter__(self):
        self._directory = tempfile.TemporaryDirectory(prefix="hvd-bench-")
        self.socket_path = str(Path(self._directory.name) / "referee")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.socket_path)
        self._listener.listen(256)
        self.jobs = {}
        return self

    def __exit__(self, *_):
        for job in self.jobs.values():
            job.end()
        self._listener.close()
        self._directory.cleanup()

    def scratch(self, name):
        """A path for this run only."""
        return str(Path(self._directory.name) / name)

    def start(self, name, command, ranks, environment=None, seconds=60.0):
        """Starts a job and waits for its ranks. Raises JobFailed, after which it is gone."""
        job = Job(name, command, ranks, environment)
        try:
            self._meet(job, time.monotonic() + seconds)
        except BaseException:
            job.end()
            raise
        self.jobs[name] = job

    def _meet(self, job, deadline):
        self._listener.settimeout(0.2)
        while len(job.sockets) < job.ranks:
            if job.has_ended():
                raise job.failure("ended early")
            if time.monotonic() > deadline:
                raise job.failure("did not start in time")
            try:
                peer, _ = self._listener.accept()
            except socket.timeout:
                continue
            peer.settimeout(5)
            hello = b""
            while not hello.endswith(b"\n"):
                hello += peer.recv(1)
            job.sockets[int(hello.split()[2])] = peer

    def time(self, name, what, calls, block=1, seconds=120.0):
        """Seconds of one call on the slowest rank; None if the library does not have it."""
        answers = self.jobs[name].ask(f"{what} {calls} {block}", seconds)
        if any(answer.startswith("no") for answer in answers):
            return None
        return max(map(float, answers))

    def contest(self, what, rounds, budget, most_calls=5000):
        """Times `what` ("OPERATION TYPE BYTES") in rounds, all jobs in turn in each. `budget`: seconds for one job in one round, about.

        Returns {name: [seconds of one call, a number per round]}, without the jobs that don't have it.
        """
        calls, times = {}, {}
        for name in self.jobs:
            first = self.time(name, what, 2)
            if first is None:
                continue
            again = self.time(name, what, max(1, min(most_calls, int(budget / 4 / first))))  # warm by now
            calls[name] = max(1, min(most_calls, int(budget / again)))
            times[name] = []
        for _ in range(rounds):
            for name, number in calls.items():
                block = (
                    max(1, number // 50) if number >= 1000 else 1
                )  # short calls: the clock is read less often than they are made
                times[name].append(self.time(name, what, number, block))
        return times


def median_ratio(over, under):
    """The median of the rounds' ratios, or None."""
    return statistics.median(a / b for a, b in zip(over, under)) if over and under else None
