"""Times the steps of a small conv net with default settings for threads: workers share the host's cores.

    ./tools/run python tools/bench/threads.py [--np 2 4] [--rounds N] [--steps N] [--batch N]

Each column is a separate job; they take turns. Columns, in milliseconds per step, medians of all rounds:
  hvd       horovodrun, DistributedOptimizer
  torchrun  torchrun, DistributedDataParallel over Gloo (torchrun sets OMP_NUM_THREADS=1 for several processes)
  alone     horovodrun --no-omp-threads: as many threads in each worker as there are cores
  hvd/torchrun, alone/hvd   ratios of the medians; the aim for the first is at most 1.1
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import time

WAYS = ["hvd", "torchrun", "alone"]
WARMUP = 10  # steps


def work(args):
    """One process of a job: prints the median time of its steps if it is rank 0."""
    import torch
    import torch.nn.functional as F

    from models import Digits

    torch.manual_seed(0)
    model = Digits()
    if args.work == "torchrun":
        import torch.distributed as dist

        dist.init_process_group("gloo")
        rank, net = dist.get_rank(), torch.nn.parallel.DistributedDataParallel(model)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    else:
        import horovod.torch as hvd

        hvd.init()
        rank, net = hvd.rank(), model
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.01), named_parameters=model.named_parameters()
        )
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    images, labels = torch.randn(args.batch, 1, 28, 28), torch.randint(10, (args.batch,))
    times = []
    for _ in range(WARMUP + args.steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        F.cross_entropy(net(images), labels).backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    if rank == 0:
        print(f"median_ms {1000 * statistics.median(times[WARMUP:]):.3f} threads {torch.get_num_threads()}", flush=True)
    if args.work == "torchrun":
        dist.destroy_process_group()


def command_of(way, ranks, args):
    script = [__file__, "--steps", str(args.steps), "--batch", str(args.batch), "--work", way]
    if way == "torchrun":
        # With Python 3.11 torch 1.13 does not accept its own default for "no redirection"; all versions accept this value.
        redirects = ["--redirects", "1", "--tee", "1"]
        return [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            *redirects,
            "--nproc_per_node",
            str(ranks),
            *script,
        ]
    return ["horovodrun", "-np", str(ranks), *(["--no-omp-threads"] if way == "alone" else []), sys.executable, *script]


def measure(way, ranks, args):
    """Milliseconds for a step, and threads in a worker."""
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    job = subprocess.run(
        command_of(way, ranks, args), env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    said = re.search(r"median_ms (\S+) threads (\d+)", job.stdout)
    if job.returncode or not said:
        sys.exit(f"{way} with {ranks} processes failed ({job.returncode}):\n{job.stdout}{job.stderr}")
    return float(said.group(1)), int(said.group(2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--np", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--work", choices=WAYS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        return work(args)
    print(
        f"a step of a small conv net, {args.batch} images of 28x28 a process, ms (threads a worker); {len(os.sched_getaffinity(0))} cores"
    )
    print(f"{'processes':>10}" + "".join(f"{way:>16}" for way in WAYS) + f"{'hvd/torchrun':>16}{'alone/hvd':>12}")
    for ranks in args.np:
        found = {way: [] for way in WAYS}
        for _ in range(args.rounds):
            for way in WAYS:
                found[way].append(measure(way, ranks, args))
        ms = {way: statistics.median(time for time, _ in results) for way, results in found.items()}
        cells = "".join(f"{f'{ms[way]:.1f} ({found[way][-1][1]})':>16}" for way in WAYS)
        print(f"{ranks:>10}{cells}{ms['hvd'] / ms['torchrun']:>16.2f}{ms['alone'] / ms['hvd']:>12.2f}", flush=True)


if __name__ == "__main__":
    main()
