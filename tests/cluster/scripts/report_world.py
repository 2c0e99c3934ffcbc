"""Prints this worker's placement in its world, as one line of JSON."""

import json
import os
import socket

import horovod.numpy as hvd

QUERIES = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size")

hvd.init()
world = {name: getattr(hvd, name)() for name in QUERIES}
world["environment"] = {name: int(os.environ["HOROVOD_" + name.upper()]) for name in QUERIES}
world["host"] = socket.gethostname()
world["named"] = os.environ["HOROVOD_HOSTNAME"]
print("world", json.dumps(world), flush=True)
