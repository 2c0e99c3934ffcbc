"""Horovod on Dask: each process is beside a Dask worker. ``horovod.dask.run`` calls a function on all of them, with a fixed
number of processes, ``horovod.dask.run_elastic`` with one that follows the cluster. The workers need this package, too."""

from horovod.dask._package import distributed  # noqa: F401  # says what is missing
from horovod.dask.runner import run, run_elastic

__all__ = ["run", "run_elastic"]
