"""A client of the Spark Connect server at URL: prints as JSON what runs of horovod.spark give.

spark_connect.py URL
"""

import json
import sys

from pyspark.sql import SparkSession

import horovod.spark

session = SparkSession.builder.remote(sys.argv[1]).getOrCreate()


def place():
    import horovod.torch as hvd

    hvd.init()
    return hvd.rank(), hvd.local_rank(), hvd.size()


def fail():
    raise KeyError("mine")


def error_of(*args, **kwargs):
    try:
        return horovod.spark.run(*args, **kwargs)
    except (RuntimeError, TimeoutError, ValueError) as error:
        return str(error)


said = {"run": horovod.spark.run(place, num_proc=2)}
said["run_elastic"] = horovod.spark.run_elastic(place, num_proc=2, max_num_proc=3)
said["failing"] = error_of(fail, num_proc=2)
said["too few slots"] = error_of(place, num_proc=3, start_timeout=3)
said["no number"] = error_of(place)
said["afterwards"] = horovod.spark.run(place, num_proc=2)
print(json.dumps(said))
session.stop()
