"""A process of a launch: sums over all ranks, then does what its argument says: nothing, or rank 1 fails by "raise", "exit" or "kill" while others
wait for it in a collective; or "twice": it joins again; or "order": whether collectives have the ranks' order."""

import json
import os
import sys

import numpy

import horovod.numpy as hvd

what = sys.argv[1] if len(sys.argv) > 1 else ""


def check_order():
    """Blocks of different lengths, so that none can stand in another's place."""
    rank, size = hvd.rank(), hvd.size()
    blocks = [numpy.full(1 + each, each) for each in range(size)]
    assert (hvd.allgather(blocks[rank]) == numpy.concatenate(blocks)).all()
    for root in range(size):
        assert (hvd.broadcast(blocks[root] if rank == root else numpy.zeros(1 + root, int), root) == blocks[root]).all()
    received, counts = hvd.alltoall(numpy.repeat(numpy.arange(size), rank + 1), numpy.full(size, rank + 1))
    assert counts.tolist() == [1 + each for each in range(size)] and (received == rank).all()
    parts = hvd.reducescatter(numpy.arange(2 * size, dtype=float), op=hvd.Sum)
    assert (parts == numpy.array([2 * rank, 2 * rank + 1]) * size).all()
    large = hvd.allreduce(numpy.full(1 << 18, rank, dtype=float), op=hvd.Sum)
    assert (large == size * (size - 1) // 2).all()


hvd.init()
total = hvd.allreduce(numpy.ones(2), op=hvd.Sum, name="all")[0]
place = {
    name: getattr(hvd, name)() for name in ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size")
}
said = {
    name: os.environ.get(name)
    for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID", "SLURMD_NODENAME", "OMPI_COMM_WORLD_RANK")
}
print(json.dumps({**place, **said, "total": total, "pid": os.getpid()}) + "\n", end="", flush=True)
if what == "order":
    check_order()
if hvd.rank() == 1:
    if what == "raise":
        raise ValueError("on purpose")
    if what == "exit":
        sys.exit(7)
    if what == "kill":
        os.kill(os.getpid(), 9)
if what == "twice":
    hvd.shutdown()
    hvd.init()
if what:
    hvd.allreduce(numpy.ones(2), op=hvd.Sum, name="more")
