"""Checkpoints in S3, simulated by moto's server: from the start of a job to a new one that continues. The rules of URLs, one by one, are in
python/tests/test_torch_checkpoint_url.py."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import boto3
import pytest
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

from launcher import Launcher
from training_log import TrainingLog

TRAINING = Path(__file__).resolve().parents[1] / "cluster/scripts/elastic_train.py"
SECRET = "not-for-other-eyes"


class S3:
    """A server with a bucket, on a free port. With `holds` set, uploads of parts wait for `go_on`."""

    def __init__(self):
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._serve, threaded=True)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.holds, self.reached, self.go_on = False, threading.Event(), threading.Event()
        # A name, which clients look up, as that of a real one.
        self.environment = {
            "AWS_ENDPOINT_URL": f"http://localhost:{self._server.port}",
            "AWS_ACCESS_KEY_ID": "me",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "OMP_NUM_THREADS": "1",
        }
        self.client = boto3.client(
            "s3",
            endpoint_url=self.environment["AWS_ENDPOINT_URL"],
            aws_access_key_id="me",
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )
        self.client.create_bucket(Bucket="bucket")

    def _serve(self, environ, start_response):
        if self.holds and environ["REQUEST_METHOD"] == "PUT" and "partNumber" in environ.get("QUERY_STRING", ""):
            self.reached.set()
            self.go_on.wait(120)
        return self._app(environ, start_response)

    def names(self):
        contents = self.client.list_objects_v2(Bucket="bucket").get("Contents", [])
        return [item["Key"].partition("/")[2] for item in contents]

    def close(self):
        self.go_on.set()
        urllib.request.urlopen(self.environment["AWS_ENDPOINT_URL"] + "/moto-api/reset", data=b"", timeout=60).close()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def s3():
    server = S3()
    yield server
    server.close()


@pytest.fixture
def horovodrun(tmp_path):
    launcher = Launcher(tmp_path)
    yield launcher
    launcher.close()


def start(horovodrun, s3, *options, url="s3://bucket/job", every=100000):
    durable = ["--checkpoint-dir", url, "--checkpoint-every", every, "--samples", "100000"]
    command = [
        "-np",
        "2",
        "--min-np",
        "1",
        "--grace",
        "10",
        sys.executable,
        TRAINING,
        "--framework",
        "numpy",
        *durable,
        *options,
    ]
    return horovodrun.start(*command, env=s3.environment)


def trains(job, steps):
    log = TrainingLog(job.stdout)
    log.wait_until(lambda: log.trains_with(2) and log.last_step() >= steps, 300, "two ranks train")
    return log


def first_steps(job):
    """How far the job was when it began to train."""
    log = TrainingLog(job.stdout)
    log.wait_until(lambda: log.last_step() > 0, 300, "it trains")
    return next(iter(log.worlds().values()))[1]


def test_drained_job_continues_in_a_new_one(horovodrun, s3):
    """The last commit is written at the end of a process, which then needs new connections to the store."""
    first = start(horovodrun, s3)
    log = trains(first, 5)
    assert s3.names() == [".claim"]
    first.signal(signal.SIGTERM)
    assert first.wait(90) == 143, first.everything()
    assert s3.names() == [f"checkpoint-{log.last_step()}-w1.hvd"], first.everything()
    second = start(horovodrun, s3)
    assert first_steps(second) == log.last_step(), second.everything()
    assert f"from commit {log.last_step()}, checkpoint s3://bucket/job/checkpoint-" in second.stderr.text
    second.signal(signal.SIGTERM)
    assert second.wait(90) == 143
    assert len(s3.names()) == 2 and all("-w1." in name or "-w2." in name for name in s3.names())
    assert SECRET not in first.everything() + second.everything()


def test_store_can_be_connected_to_at_the_end_of_a_process(s3):
    """Where Python no longer gives clients the threads in which they look up names, unless one is early."""
    script = """
from horovod.elastic.checkpoint_url import place_of
place = place_of("s3://bucket/job")
place.make()
place.at_exit(lambda: place.take("a"))
"""
    subprocess.run([sys.executable, "-c", script], env={**os.environ, **s3.environment}, check=True, timeout=60)
    assert s3.names() == [".claim"]


def test_checkpoint_that_can_not_be_written_leaves_no_upload(s3):
    script = """
from horovod.elastic.checkpoint_url import place_of
place = place_of("s3://bucket/job")
place.make()
def write(file):
    for _ in range(9):
        file.write(bytes(8 << 20))
    raise OSError("as a test")
try:
    place._put("checkpoint-1-w1.hvd", write, lambda: None)
except OSError as error:
    print(error)
"""
    environment = {**os.environ, **s3.environment}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("as a test\n", "")
    assert s3.names() == [] and "Uploads" not in s3.client.list_multipart_uploads(Bucket="bucket")


def test_kill_9_in_the_middle_of_an_upload(horovodrun, s3):
    first = start(horovodrun, s3, every=5)
    log = trains(first, 12)
    log.wait_until(lambda: len(s3.names()) >= 2, 300, "a checkpoint")
    s3.holds = True
    assert s3.reached.wait(60)
    before = [name for name in s3.names() if name != ".claim"]
    for pid in horovodrun.processes():
        with contextlib.suppress(ProcessLookupError):  # some end by themselves when they lose the others
            os.kill(pid, signal.SIGKILL)
    first.wait(60)
    assert horovodrun.processes_left() == []
    s3.holds = False
    s3.go_on.set()
    second = start(horovodrun, s3)
    newest = max(int(name.split("-")[1]) for name in before)
    assert first_steps(second) == newest, second.everything()
    assert [name for name in s3.names() if name != ".claim"] == before
    second.signal(signal.SIGINT)
    second.wait(60)


def test_second_job_is_refused_and_leaves_the_first_alone(horovodrun, s3):
    first = start(horovodrun, s3)
    log = trains(first, 2)
    second = start(horovodrun, s3)
    assert second.wait(240) == 1, second.everything()
    expected = "ValueError: checkpoint_dir s3://bucket/job is in use by another job (process "
    assert expected in second.stderr.text, second.everything()
    step = log.last_step()
    log.wait_until(lambda: log.last_step() > step + 2, 300, "the first trains on")
    first.signal(signal.SIGTERM)
    assert first.wait(90) == 143
    assert s3.names() == [f"checkpoint-{log.last_step()}-w1.hvd"], first.everything()


def test_bucket_that_is_not_there_is_one_line_at_the_start(horovodrun, s3):
    job = start(horovodrun, s3, url="s3://backet/job")
    assert job.wait(240) == 1, job.everything()
    expected = "Unreachable: checkpoint_dir s3://backet/job can't be written: The specified bucket does not exist"
    assert expected in job.stderr.text, job.everything()
