"""Fixtures of the tests that run jobs on engines, Spark, Ray, Dask, and with stores."""

import contextlib
import os
import shutil
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
# Ray's clusters send no usage statistics, and write no token into the home folder.
os.environ.update(RAY_AUTH_MODE="disabled", RAY_USAGE_STATS_ENABLED="0")


@pytest.fixture
def tokens(monkeypatch):
    """Those of the jobs that Spark and Dask run from now on."""
    from horovod.runner._job import Job

    found = set()

    class Recorder(Job):
        @property
        def join_info(self):
            info = super().join_info
            found.update(line.split('"')[1] for line in info.credentials.splitlines() if line.startswith("token"))
            return info

    monkeypatch.setattr("horovod.runner._engine_run.Job", Recorder)
    return found


@pytest.fixture(scope="module")
def local_spark():
    """A session in this process, local[2]."""
    from pyspark.sql import SparkSession

    from spark_cluster import QUIET, environment

    saved = dict(os.environ)
    os.environ.update(environment())
    builder = SparkSession.builder.master("local[2]")
    for name, value in QUIET.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
    os.environ.clear()
    os.environ.update(saved)


def text_of_pages(root, paths):
    """What a server of web pages says at these paths; a page that is not there is an empty one."""
    texts = []
    for path in paths:
        with contextlib.suppress(urllib.error.HTTPError), urllib.request.urlopen(root + path, timeout=60) as page:
            texts.append(page.read())
    return b"".join(texts)


@pytest.fixture(scope="session")
def ray_folder():
    """The folder that replaces /tmp/ray."""
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # sockets' paths must be short
    address_folder = Path(
        "/tmp/ray"
    )  # Ray writes a cluster's address there, but does not make it for a cluster elsewhere
    makes_it = not address_folder.exists()
    address_folder.mkdir(exist_ok=True)
    yield folder
    for each in [folder, *([address_folder] if makes_it else [])]:
        shutil.rmtree(each, ignore_errors=True)
