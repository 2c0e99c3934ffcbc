"""Measures the negotiation of many tensors, as one group and as single ones. Each has 4 elements, so that little else is timed.

    tools/bench/run groups [--tensors 1000 2000 4000 8000] [--rounds 5]

Prints for each number of tensors the milliseconds of a grouped_allreduce_, of as many allreduce_async_ that are then waited for, the medians
over rounds in which both take turns; the ratio of the group to the single ones, and of each to half as many tensors.
"""

import argparse
import statistics
import time

import torch

import horovod.torch as hvd


def milliseconds(call):
    hvd.barrier()
    start = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - start)


def both_ways(count):
    tensors = [torch.ones(4) for _ in range(count)]
    names = [f"single.{i}" for i in range(count)]

    def singles():
        for handle in [hvd.allreduce_async_(tensor, name=name) for tensor, name in zip(tensors, names)]:
            hvd.synchronize(handle)

    return {"group": lambda: hvd.grouped_allreduce_(tensors, name=f"group.{count}"), "single": singles}


def medians(count, rounds):
    ways = both_ways(count)
    times = {way: [] for way in ways}
    for number in range(rounds + 1):
        for way, call in ways.items():
            taken = milliseconds(call)
            if number > 0:  # the first warms up
                times[way].append(taken)
    return {way: statistics.median(taken) for way, taken in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--tensors",
        type=int,
        nargs="+",
        default=[1000, 2000, 4000, 8000],
        metavar="N",
        help="numbers, each best twice the last",
    )
    parser.add_argument("--rounds", type=int, default=5, help="(default: 5)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    hvd.init()
    if hvd.rank() == 0:
        print(f"{hvd.size()} processes, median of {args.rounds} rounds")
        print(
            f"{'tensors':>8} {'group, ms':>10} {'single, ms':>11} {'group/single':>13} {'group grew':>11} {'single grew':>12}"
        )
    before = None
    for count in args.tensors:
        now = medians(count, args.rounds)
        grew = [f"{now[way] / before[way]:.2f}" if before else "" for way in now]
        if hvd.rank() == 0:
            ratio = now["group"] / now["single"]
            print(
                f"{count:8} {now['group']:10.1f} {now['single']:11.1f} {ratio:13.2f} {grew[0]:>11} {grew[1]:>12}",
                flush=True,
            )
        before = now
    hvd.shutdown()


if __name__ == "__main__":
    main()
