"""Measures the cost of one call of the Python package apart from moving data: tensors have a few elements.

    ./tools/run horovodrun -np 2 python tools/bench/python_calls.py

Prints for each call, in microseconds, its time (median over rounds) and the CPU time of the calling thread (minimum): that of Python,
ctypes and the part of the runtime outside the engine's thread. Optimizer steps have 161 parameters, like ResNet-50; the time of plain
SGD is subtracted. In a world of one (without horovodrun) optimizers reduce nothing.
"""

import argparse
import statistics
import time

import torch

import horovod.torch as hvd

PARAMETERS = 161


def calls():
    """Yields the name, the number of repetitions in a round, and the call."""
    x = torch.zeros(1)
    many = [torch.zeros(16) for _ in range(PARAMETERS)]
    yield "allreduce_, named", 300, lambda: hvd.allreduce_(x, name="bench", op=hvd.Sum)
    yield "allreduce, named", 300, lambda: hvd.allreduce(x, name="bench", op=hvd.Sum)
    yield "allreduce, unnamed", 300, lambda: hvd.allreduce(x)
    yield "allreduce_async_, synchronize", 300, lambda: hvd.synchronize(hvd.allreduce_async_(x, name="bench"))
    yield "allgather", 300, lambda: hvd.allgather(x, name="gather")
    yield "broadcast_", 300, lambda: hvd.broadcast_(x, 0, name="broadcast")
    yield "barrier", 300, hvd.barrier
    yield "grouped_allreduce_ of 161", 20, lambda: hvd.grouped_allreduce_(many, name="group")

    def each():
        for handle in [hvd.allreduce_async_(t, name=f"each.{i}") for i, t in enumerate(many)]:
            hvd.synchronize(handle)

    yield "161 allreduce_async_, then synchronize", 20, each
    yield "step of 161 parameters", 20, step(True), step(False)
    yield "step of 161 parameters in 5 groups", 20, step(True, groups=5), step(False)


def step(distributed, **settings):
    parameters = [torch.nn.Parameter(torch.zeros(16)) for _ in range(PARAMETERS)]
    optimizer = torch.optim.SGD(parameters, lr=0.0)
    if distributed:
        names = [(f"layer.{i}.weight", p) for i, p in enumerate(parameters)]
        optimizer = hvd.DistributedOptimizer(optimizer, names, **settings)

    def run():
        optimizer.zero_grad()
        torch.stack([p.sum() for p in parameters]).sum().backward()
        optimizer.step()

    return run


def time_round(call, times):
    """Microseconds of one call: of the clock, and of this thread's CPU time."""
    hvd.barrier()
    wall, cpu = time.perf_counter(), time.thread_time()
    for _ in range(times):
        call()
    return ((time.perf_counter() - wall) / times * 1e6, (time.thread_time() - cpu) / times * 1e6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="rounds of each call (default: 15)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    hvd.init()
    if hvd.rank() == 0:
        print(f"{hvd.size()} processes, median of {args.rounds} rounds; torch {torch.__version__}")
        print(f"{'call':<40} {'us':>9} {'caller CPU us':>14}")
    for name, times, *versions in calls():
        rounds = []
        for number in range(args.rounds + 2):
            measured = [time_round(call, times) for call in versions]
            if number > 1:  # the first warm up
                rounds.append(measured[0] if len(measured) == 1 else [a - b for a, b in zip(*measured)])
        walls, cpus = zip(*rounds)
        wall, cpu = statistics.median(walls), min(cpus)
        if hvd.rank() == 0:
            print(f"{name:<40} {wall:9.1f} {cpu:14.1f}", flush=True)
    hvd.shutdown()


if __name__ == "__main__":
    main()
