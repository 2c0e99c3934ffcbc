"""Sums ones until a file exists: reduce_until.py FILE. Rank 0 prints the number of sums, and that all were right."""

import sys
from pathlib import Path

import numpy

import horovod.numpy as hvd

hvd.init()
print("joined", flush=True)
sums = 0
while True:
    over = numpy.full(1000, float(hvd.rank() == 0 and Path(sys.argv[1]).exists()), numpy.float32)
    over = hvd.allreduce(over, op=hvd.Sum, name="over")
    ones = hvd.allreduce(numpy.ones(200_000, numpy.float32), op=hvd.Sum, name="ones")
    assert (ones == hvd.size()).all()
    sums += 1
    if over[0] > 0:
        break
if hvd.rank() == 0:
    print(f"{sums} sums", flush=True)
