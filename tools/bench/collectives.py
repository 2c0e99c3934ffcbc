"""Times collectives of several libraries in turn, from 4 bytes to 256 MB.

    tools/bench/run allreduce [--np 2 4] [--sizes 4B 1MB ...]          sums of float32 in place, and of float16 and bfloat16
    tools/bench/run collectives [--np 2 4] [--sizes 64KB ...]          allgather, broadcast, alltoall, reducescatter

Columns, in microseconds per call on the slowest rank, medians of all rounds:
  c++         our communicator, called from C++ (without the engine: nothing is negotiated)
  hvd         hvd.allreduce_() and the like from Python
  torch 1.13  torch.distributed over Gloo, of Debian; torch 2.13: pip's
  mpi         Open MPI, from C
  horovod     Horovod 0.28.1 from Python, where there is one
Columns a/b are the medians of the rounds' ratios: so many times faster is b. A size is that of a rank's larger buffer.
"""

import sys

import bench
from referee import JobFailed, Referee, median_ratio

ALLREDUCE_SIZES = ["4B", "1KB", "64KB", "1MB", "16MB", "64MB", "256MB"]
OTHER_SIZES = ["64KB", "4MB", "64MB"]
HALF_SIZES = ["1MB", "64MB"]


def contestants(args, ranks, referee):
    """{name: (command, environment)}"""
    worker = [str(bench.HERE / "worker_collectives.py")]
    ours = args.torch[-1]
    found = {
        "c++": (
            [str(args.programs / "communicator_bench"), args.backend, str(ranks), referee.socket_path, "c++"],
            None,
        ),
        "hvd": (
            bench.horovodrun(args, ranks) + [bench.python_of(ours), *worker, "hvd", referee.socket_path, "hvd"],
            bench.environment(args, ours),
        ),
    }
    for which in args.torch:
        name = bench.TORCH[which]
        command = [
            bench.python_of(which),
            *worker,
            "gloo",
            referee.socket_path,
            name.replace(" ", "-"),
            referee.scratch("store-" + which),
            "RANK",
            str(ranks),
        ]
        found[name] = bench.forked(command, ranks), None
    original = bench.original_horovod(args, ranks)
    if original:
        launcher, python, environment = original
        found["horovod"] = [*launcher, python, *worker, "hvd", referee.socket_path, "horovod"], environment
    found["mpi"] = bench.mpirun(ranks) + [str(args.programs / "mpi_worker"), referee.socket_path, "mpi"], None
    return found


def start(args, ranks, referee):
    for name, (command, environment) in contestants(args, ranks, referee).items():
        if args.only and name not in args.only:
            continue
        try:
            referee.start(name, command, ranks, environment)
        except (JobFailed, FileNotFoundError) as error:
            bench.note(f"without {name}: {error}")


def compare(args, table, referee, label, what):
    """One row."""
    try:
        times = referee.contest(what, args.rounds, args.budget)
    except JobFailed as error:
        bench.fail(f"{label}: {error}")
    values = {name: 1e6 * bench.median(seconds) for name, seconds in times.items()}
    for peer in peers_of(args):
        for us in ("c++", "hvd"):
            values[f"{peer}/{us}".replace("torch ", "")] = median_ratio(times.get(peer), times.get(us))
    table.row(label, values, rounds=args.rounds)


def peers_of(args):
    return [
        *(bench.TORCH[which] for which in args.torch),
        "mpi",
        *(["horovod"] if bench.original_horovod(args, 1) else []),
    ]


def titles(args):
    peers = peers_of(args)
    ratios = [
        f"{peer}/{us}".replace("torch ", "")
        for us in ("c++", "hvd")
        for peer in peers
        if (us, peer) not in (("hvd", "mpi"), ("c++", "horovod"))
    ]
    return ["c++", "hvd", *peers, *ratios]


def allreduce(args, referee, ranks):
    table = bench.Table(args, f"allreduce, sum, in place, {ranks} processes", "size", titles(args))
    for size in args.sizes or ALLREDUCE_SIZES:
        compare(args, table, referee, size, f"allreduce float32 {bench.size_of(size)}")
    for kind in [] if args.sizes else ["float16", "bfloat16"]:
        for size in HALF_SIZES:
            compare(args, table, referee, f"{size} {kind}", f"allreduce {kind} {bench.size_of(size)}")


def others(args, referee, ranks):
    table = bench.Table(args, f"float32, {ranks} processes", "operation", titles(args))
    for operation in ("allgather", "broadcast", "alltoall", "reducescatter"):
        for size in args.sizes or OTHER_SIZES:
            compare(args, table, referee, f"{operation} {size}", f"{operation} float32 {bench.size_of(size)}")


def main():
    parser = bench.parser(__doc__, rounds=9, budget=0.05)
    parser.add_argument("part", choices=["allreduce", "collectives"])
    parser.add_argument("--sizes", nargs="+", metavar="SIZE", help="4B, 64KB, 1MB, ...")
    parser.add_argument(
        "--backend",
        default="shm",
        choices=["shm", "shm-plain", "shm-streaming", "tcp", "gloo"],
        help="of the C++ caller (default: shm)",
    )
    parser.add_argument("--only", nargs="+", metavar="COLUMN", help="these libraries only")
    args = parser.parse_args()
    bench.begin(args)
    for ranks in args.np:
        with Referee() as referee:
            start(args, ranks, referee)
            (allreduce if args.part == "allreduce" else others)(args, referee, ranks)


if __name__ == "__main__":
    sys.exit(main())
