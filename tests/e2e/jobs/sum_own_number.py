"""Two of these jobs run side by side: each sums its own number many times, and would see the other's if they ever met.

sum_own_number.py NUMBER MINE_IS_UP OTHER_IS_UP      two named pipes with which the jobs make sure that both are up
"""

import sys

import numpy

import horovod.numpy as hvd

number = float(sys.argv[1])
hvd.init()
if hvd.rank() == 0:
    # Opening a named pipe waits for the other end.
    order = [(sys.argv[2], "w"), (sys.argv[3], "r")] if number == 1 else [(sys.argv[3], "r"), (sys.argv[2], "w")]
    for name, mode in order:
        open(name, mode).close()
hvd.barrier()
for step in range(300):
    total = hvd.allreduce(numpy.full(17, number), op=hvd.Sum, name=f"tensor.{step % 3}")
    assert (total == number * hvd.size()).all(), total
print("sums were right", hvd.size(), flush=True)
