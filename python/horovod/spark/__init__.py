"""Horovod on Spark: each process is a Spark task. ``horovod.spark.run`` calls a function on all of them, with a fixed
number of processes, ``horovod.spark.run_elastic`` with one that follows the executors. Spark 3.4 to 4.x, also by Spark
Connect. The executors need this package, too."""

from horovod.spark import conf  # noqa: F401
from horovod.spark._package import pyspark  # noqa: F401  # says what is missing
from horovod.spark.runner import run, run_elastic

__all__ = ["run", "run_elastic"]
