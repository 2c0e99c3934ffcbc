"""Fixtures of the tests that run jobs on engines: Spark, Ray, Dask."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
# Ray's clusters tell nobody that they are there, and write no token into the home folder.
os.environ.update(RAY_AUTH_MODE="disabled", RAY_USAGE_STATS_ENABLED="0")


@pytest.fixture(scope="session")
def ray_folder():
    """What Ray would write to /tmp/ray."""
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # sockets' paths must be short
    address_folder = Path(
        "/tmp/ray"
    )  # Ray writes a cluster's address there, but does not make it for a cluster elsewhere
    makes_it = not address_folder.exists()
    address_folder.mkdir(exist_ok=True)
    yield folder
    for each in [folder, *([address_folder] if makes_it else [])]:
        shutil.rmtree(each, ignore_errors=True)
