"""Prints the variables of its place, and its place in the world, before and after hvd.init()."""

import json
import os

import horovod.numpy as hvd

FIELDS = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size")


def variables():
    return [int(os.environ[f"HOROVOD_{field.upper()}"]) for field in FIELDS]


before = variables()
hvd.init()
world = [getattr(hvd, field)() for field in FIELDS]
print(json.dumps({"before": before, "after": variables(), "world": world}), flush=True)
hvd.barrier()
