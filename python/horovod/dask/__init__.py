"""Horovod on Dask: ``horovod.dask.run`` and ``horovod.dask.run_elastic`` call a function beside the workers of a cluster."""

from horovod import _missing

_missing.framework("distributed", "horovod.dask needs Dask's scheduler: pip install distributed")

from horovod.dask.runner import run, run_elastic  # noqa: E402

__all__ = ["run", "run_elastic"]
