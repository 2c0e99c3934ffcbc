"""Horovod on Spark: each process is a Spark task.

``horovod.spark.run`` calls a function in a fixed number of processes, ``horovod.spark.run_elastic`` in a number that follows
the executors. It works with Spark 3.4 to 4.x, also through Spark Connect. The executors need this package too.
"""

from horovod import _missing

_missing.framework("pyspark", "horovod.spark needs Spark 3.4 or later: pip install pyspark")

from horovod.spark import conf  # noqa: E402, F401
from horovod.spark.runner import run, run_elastic  # noqa: E402

__all__ = ["run", "run_elastic"]
