"""Horovod on Dask: each process is beside a Dask worker. ``horovod.dask.run`` calls a function on all of them, with a fixed
number of processes, ``horovod.dask.run_elastic`` with one that follows the cluster. The workers need this package, too."""

from horovod import _missing

_missing.framework("distributed", "horovod.dask needs Dask's scheduler: pip install distributed")

from horovod.dask.runner import run, run_elastic  # noqa: E402

__all__ = ["run", "run_elastic"]
