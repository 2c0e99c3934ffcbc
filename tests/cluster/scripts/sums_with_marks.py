"""Tensors, a tensor's name and an object that can be told from anything else in what goes over the network; checks every result.

    sums_with_marks.py STEPS

The marks are those of tests/cluster/encryption_test.py. Exits with 7 if a result is wrong.
"""

import sys

import numpy

import horovod.numpy as hvd

TENSOR_MARK = b"<mark of a tensor>"
OBJECT_MARK = "<mark of an object>"
NAME_MARK = "<mark of a name>"


def check(is_right, what):
    if not is_right:
        print(f"wrong: {what}", flush=True)
        sys.exit(7)


hvd.init(process_sets="dynamic")
ends = hvd.add_process_set([0, hvd.size() - 1]) if hvd.size() > 2 else hvd.global_process_set
marked = numpy.frombuffer(bytearray(TENSOR_MARK * 3000), numpy.uint8)
for step in range(int(sys.argv[1])):
    total = hvd.allreduce(
        numpy.arange(40_000, dtype=numpy.float32) + hvd.rank(), op=hvd.Sum, name=f"{NAME_MARK}.{step}"
    )
    expected = numpy.arange(40_000, dtype=numpy.float32) * hvd.size() + hvd.size() * (hvd.size() - 1) / 2
    check(numpy.array_equal(total, expected), f"sum of step {step}")
    root = step % hvd.size()
    got = hvd.broadcast(marked if hvd.rank() == root else numpy.zeros_like(marked), root)
    check(numpy.array_equal(got, marked), f"broadcast of step {step}")
    check(
        hvd.allgather_object((OBJECT_MARK, hvd.rank())) == [(OBJECT_MARK, rank) for rank in range(hvd.size())],
        f"objects of step {step}",
    )
    if ends.included():
        got = hvd.allgather(marked, name=f"{NAME_MARK} of ends.{step}", process_set=ends)
        check(numpy.array_equal(got, numpy.concatenate([marked, marked])), f"allgather of step {step}")
    if hvd.rank() == 0:
        print(f"step {step}", flush=True)
hvd.shutdown()
