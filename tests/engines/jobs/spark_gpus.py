"""Prints the GPUs that each rank's task was given, in a local cluster of Spark with two made-up ones."""

import json
import os
import tempfile

from pyspark.sql import SparkSession

import horovod.spark
from horovod.spark.task import get_available_devices

with tempfile.TemporaryDirectory() as directory:
    script = os.path.join(directory, "gpus")
    with open(script, "w") as file:
        file.write('#!/bin/sh\necho \'{"name": "gpu", "addresses": ["0", "1"]}\'\n')
    os.chmod(script, 0o700)
    amounts = {f"spark.{who}.resource.gpu.amount": n for who, n in (("worker", 2), ("task", 1), ("executor", 2))}
    scripts = {f"spark.{who}.resource.gpu.discoveryScript": script for who in ("worker", "executor")}
    builder = SparkSession.builder.master("local-cluster[1,2,1024]").config("spark.ui.enabled", "false")
    for name, value in {**amounts, **scripts}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    print(json.dumps(horovod.spark.run(get_available_devices, num_proc=2, verbose=0)))
    session.stop()
