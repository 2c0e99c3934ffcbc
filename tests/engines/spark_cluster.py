"""Spark for tests: a standalone master and workers on this machine, and a server of Spark Connect."""

import os
import re
import sys
from pathlib import Path

import pyspark

from processes import Running

SPARK = Path(pyspark.__file__).parent
QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}


def environment(**more):
    """Returns the environment of Spark's processes: everything stays on loopback."""
    own = {"SPARK_HOME": str(SPARK), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    return {**os.environ, **own, "OMP_NUM_THREADS": "1", **more}


class StandaloneCluster:
    """A master and two workers of one core each, in the given directory."""

    def __init__(self, directory, **more):
        self._directory, self._environment = directory, environment(**more)
        self._started = []
        self.master = self._start("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0")
        port = self.master.stderr.wait_for(r"Starting Spark master at spark://127\.0\.0\.1:(\d+)", 60).group(1)
        self.url = f"spark://127.0.0.1:{port}"
        self.workers = []
        for _ in range(2):
            self.start_worker()
        for worker in self.workers:
            worker.stderr.wait_for("Successfully registered with master", 60)

    def start_worker(self):
        options = ["--host", "127.0.0.1", "-c", "1", "-m", "1g", "-d", str(self._directory)]
        self.workers.append(self._start("org.apache.spark.deploy.worker.Worker", *options, self.url))
        return self.workers[-1]

    def end_worker(self, worker):
        """Ends the worker and its executors."""
        self.workers.remove(worker)
        worker.end()

    def _start(self, service, *arguments):
        command = [str(SPARK / "bin" / "spark-class"), service, "--webui-port", "0", *arguments]
        self._started.append(Running(command, env=self._environment, cwd=self._directory))
        return self._started[-1]

    def close(self):
        for running in reversed(self._started):
            running.end()


class ConnectServer:
    """A server of Spark Connect with a local[2] session."""

    def __init__(self, directory):
        settings = {**QUIET, "spark.connect.grpc.binding.port": "0", "spark.connect.grpc.binding.address": "127.0.0.1"}
        flags = [text for name, value in settings.items() for text in ("--conf", f"{name}={value}")]
        service = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
        command = [str(SPARK / "bin" / "spark-submit"), "--master", "local[2]", *flags, *service]
        self._running = Running(command, env=environment(), cwd=directory)
        started = self._running.stderr.wait_for(r"Spark Connect server started at: 127\.0\.0\.1:(\d+)", 90)
        self.url = f"sc://127.0.0.1:{started.group(1)}"

    def close(self):
        self._running.end()


def executor_of(pid):
    """The executor's JVM that a worker process belongs to, by its ancestors: its pid and its number."""
    while pid > 1:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if b"--executor-id" in words:
            return pid, words[words.index(b"--executor-id") + 1].decode()
        pid = int(re.search(r"^PPid:\s*(\d+)", Path(f"/proc/{pid}/status").read_text(), re.M).group(1))
    raise AssertionError("it has no executor")
