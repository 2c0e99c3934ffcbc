"""Sums ones until a file exists: reduce_until.py FILE. Rank 0 prints the number of sums, and that all were right."""

import sys
from pathlib import Path

import torch

import horovod.torch as hvd

hvd.init()
print("joined", flush=True)
sums = 0
while True:
    over = torch.tensor([float(hvd.rank() == 0 and Path(sys.argv[1]).exists())] * 1000)
    over = hvd.allreduce(over, op=hvd.Sum, name="over")
    ones = hvd.allreduce(torch.ones(200_000), op=hvd.Sum, name="ones")
    assert ones.eq(hvd.size()).all()
    sums += 1
    if over[0] > 0:
        break
if hvd.rank() == 0:
    print(f"{sums} sums", flush=True)
