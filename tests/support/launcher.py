"""Starts horovodrun for tests on this machine."""

import itertools
import os
import subprocess
import time

from processes import GUARD, Running, pids_with, wait_until_none

COUNTER = itertools.count()


class Launcher:
    """Starts horovodrun; every process that comes of it carries a mark in its environment."""

    def __init__(self, directory):
        self._directory = directory
        self._started = []
        self._name = f"{os.getpid()}-{next(COUNTER)}-{time.monotonic_ns()}"

    def start(self, *arguments, env=None, **options):
        options.setdefault("cwd", self._directory)
        environment = {**os.environ, **(env or {}), "HVD_TEST_MARK": self._name}
        self._started.append(Running(["horovodrun", *map(str, arguments)], env=environment, **options))
        return self._started[-1]

    def run(self, *arguments, timeout=90, **options):
        """Runs it to its end; has .returncode, .stdout and .stderr."""
        job = self.start(*arguments, **options)
        code = job.wait(timeout)
        return subprocess.CompletedProcess(arguments, code, job.stdout.text, job.stderr.text)

    def processes(self):
        """The ids of all that came of it and are there."""
        return pids_with(f"HVD_TEST_MARK={self._name}\0".encode())

    def processes_left(self, timeout=GUARD):
        return wait_until_none(self.processes, timeout)

    def close(self):
        for job in self._started:
            job.end()
        self.processes_left()
