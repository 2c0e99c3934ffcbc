"""Rank 1 receives objects that were changed in transit: `changed_object.py broadcast|allgather`."""

import sys

import cloudpickle
import numpy

import horovod.numpy as hvd
from horovod.common import objects


def spoil(name):
    """The operation `name` of the module gives rank 1 one bit more."""
    original = getattr(objects, name)

    def spoiled(memory, *args):
        result = original(memory, *args)
        arrived = memory if result is None else result
        is_data = any(isinstance(arg, str) and arg.endswith(".data") for arg in args)
        if is_data and hvd.rank() == 1:
            arrived[len(arrived) // 2] ^= 1
        return result

    setattr(objects, name, spoiled)


def refuse(_):
    raise AssertionError("it was unpickled")


hvd.init()
assert hvd.broadcast_object("first", 0) == "first"
assert hvd.allgather_object(hvd.rank()) == [0, 1]
spoil("_" + sys.argv[1])
if hvd.rank() == 1:
    cloudpickle.loads = refuse
try:
    getattr(hvd, sys.argv[1] + "_object")({"rank": hvd.rank()})
    hvd.allreduce(numpy.ones(1))  # which tells the other rank
except hvd.HorovodInternalError as error:
    print("ended:", error, flush=True)
