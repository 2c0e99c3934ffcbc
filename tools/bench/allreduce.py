"""Times hvd.allreduce_ beside torch.distributed's all_reduce over Gloo, in the same processes, in turn.

    ./tools/run horovodrun -np 2 python tools/bench/allreduce.py

Prints, for each size, the median time of one call in microseconds on the slowest rank, and the ratio of the two. Both sum a float32
tensor in place. Rounds of the two alternate, so that a machine whose speed drifts slows both.
"""

import argparse
import socket
import statistics
import time

import torch
import torch.distributed as dist

import horovod.torch as hvd

SIZES = {"4 B": 1, "64 KB": 16 << 10, "1 MB": 256 << 10, "64 MB": 16 << 20}


def init_torch() -> None:
    """Gives torch.distributed the same ranks, over a port that rank 0's kernel chose."""
    port = None
    if hvd.rank() == 0:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
    port = hvd.broadcast_object(port, root_rank=0)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=hvd.rank(), world_size=hvd.size())


def time_round(call, tensor: torch.Tensor, calls: int) -> float:
    """Seconds of one call, on average over the round, on the slowest rank."""
    hvd.barrier()
    start = time.perf_counter()
    for _ in range(calls):
        call(tensor)
    mine = torch.tensor([(time.perf_counter() - start) / calls], dtype=torch.float64)
    return hvd.allreduce(mine, op=hvd.Max, name="bench.slowest").item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each of the two (default: 9)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    hvd.init()
    init_torch()
    ours = lambda tensor: hvd.allreduce_(tensor, op=hvd.Sum, name="bench")
    calls_of = {
        "horovod": ours,
        "torch": dist.all_reduce,
    }
    if hvd.rank() == 0:
        print(f"allreduce float32, sum, in place, {hvd.size()} processes, median of {args.rounds} rounds; "
              f"torch {torch.__version__}")
        print(f"{'size':>8} {'horovod us':>12} {'torch gloo us':>14} {'ratio':>7} {'(min..max)':>14}")
    for label, count in SIZES.items():
        tensor = torch.zeros(count)
        calls = max(3, min(300, (8 << 20) // count))
        times = {name: [] for name in calls_of}
        for round_number in range(args.rounds + 1):
            for name, call in calls_of.items():
                seconds = time_round(call, tensor, calls)
                if round_number > 0:  # the first only warms up
                    times[name].append(seconds)
        ratios = [a / b for a, b in zip(times["horovod"], times["torch"])]
        if hvd.rank() == 0:
            print(f"{label:>8} {statistics.median(times['horovod']) * 1e6:12.1f} "
                  f"{statistics.median(times['torch']) * 1e6:14.1f} {statistics.median(ratios):7.2f} "
                  f"{min(ratios):6.2f}..{max(ratios):.2f}", flush=True)
    dist.destroy_process_group()
    hvd.shutdown()


if __name__ == "__main__":
    main()
