"""horovod.spark through Spark Connect, in a separate process: a client has no SparkContext."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spark_cluster import SPARK, ConnectServer, environment

CLIENT = Path(__file__).parent / "jobs" / "spark_connect.py"


@pytest.mark.skipif(
    not list((SPARK / "jars").glob("spark-connect_*")), reason="this Spark comes without Connect's server"
)
def test_runs_fixed_elastic_and_failing(tmp_path):
    server = ConnectServer(tmp_path)
    try:
        command = [sys.executable, str(CLIENT), server.url]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=600, check=False)
    finally:
        server.close()
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["run"] == said["run_elastic"] == said["afterwards"] == [[0, 0, 2], [1, 1, 2]]
    assert said["failing"].startswith("The Horovod job failed: ") and said["failing"].count("KeyError: 'mine'") >= 1
    assert "needs a Spark task of its own" in said["too few slots"]
    assert said["no number"] == "horovod.spark.run: give num_proc; Spark Connect does not say how many tasks can run"
