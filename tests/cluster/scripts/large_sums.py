"""Sums large arrays N times, checks the sums, and prints "right" on rank 0."""

import sys

import numpy

import horovod.numpy as hvd

hvd.init()
ones = numpy.arange(1 << 22, dtype=numpy.float32)  # 16 MiB
for step in range(int(sys.argv[1])):
    total = hvd.allreduce(ones * (hvd.rank() + 1 + step), op=hvd.Sum, name="large")
    expected = ones * (hvd.size() * (hvd.size() + 1) / 2 + step * hvd.size())
    assert numpy.allclose(total, expected), step
if hvd.rank() == 0:
    print("right")
