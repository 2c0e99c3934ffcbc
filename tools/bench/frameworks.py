"""Times allreduces of TensorFlow's and JAX's tensors, as programs of the framework run them, next to the frameworks' own collectives.

    tools/bench/run frameworks [--np 2 4] [--rows 4B 1MB 64MB 64MB/16 resnet50]

Columns, in microseconds per call on the slowest rank, medians of all rounds:
  torch       horovod.torch, hvd.grouped_allreduce() of pip's torch
  tf          horovod.tensorflow, hvd.grouped_allreduce() in a tf.function
  tf eager    the same, executed eagerly
  strategy    tf.distribute.MultiWorkerMirroredStrategy, its ring over gRPC: all_reduce() in a tf.function
  jax         horovod.jax, hvd.grouped_allreduce() in a jitted function
  psum        jax.distributed: lax.psum() under shard_map in a jitted function, over Gloo
  mpi4jax     mpi4jax.allreduce() in a jitted function, over Open MPI, where it can be installed
Columns a/b are the medians of the rounds' ratios: so many times faster is b. Sums of float32; 64MB/16 is a group of 16 tensors of 64 MB together,
resnet50 one of that network's 161 gradients.
"""

import socket
import sys
from pathlib import Path

import bench
from referee import JobFailed, Referee, median_ratio

COLUMNS = ["torch", "tf", "tf-eager", "strategy", "jax", "psum", "mpi4jax"]
RATIOS = [("strategy", "tf"), ("psum", "jax"), ("mpi4jax", "jax"), ("tf", "torch")]
ROWS = ["4B", "1MB", "64MB", "64MB/16", "resnet50"]
VENV = "tf-new"


def free_ports(count):
    """Returns free ports of this machine; their users must listen on them at once."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def contestants(args, ranks, referee):
    """{name: (command, environment)}"""
    worker = [bench.python_of(VENV), str(bench.HERE / "worker_frameworks.py")]
    quiet = {**bench.environment(args, VENV), "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    addresses = [f"127.0.0.1:{port}" for port in free_ports(ranks + 1)]
    found = {
        name: (bench.horovodrun(args, ranks) + [*worker, name, referee.socket_path, name], quiet)
        for name in ("torch", "tf", "tf-eager", "jax")
    }
    for name, peers in (("strategy", addresses[:ranks]), ("psum", addresses[ranks:])):
        command = [*worker, name, referee.socket_path, name, "RANK", str(ranks), ",".join(peers)]
        found[name] = bench.forked(command, ranks), quiet
    beside = {**quiet, "PYTHONPATH": str(args.mpi4jax), "MPI4JAX_NO_WARN_JAX_VERSION": "1"}
    found["mpi4jax"] = bench.mpirun(ranks) + [*worker, "mpi4jax", referee.socket_path, "mpi4jax"], beside
    return {name: found[name] for name in COLUMNS}


def start(args, ranks, referee):
    for name, (command, environment) in contestants(args, ranks, referee).items():
        if args.only and name not in args.only:
            continue
        if name == "mpi4jax" and not args.mpi4jax.is_dir():
            bench.note(f"without mpi4jax: there is no {args.mpi4jax}")
            continue
        try:
            referee.start(name, command, ranks, environment, seconds=120)
        except (JobFailed, FileNotFoundError) as error:
            bench.note(f"without {name}: {error}")


def compare(args, table, referee, row):
    try:
        times = referee.contest(f"{row} float32 0", args.rounds, args.budget)
    except JobFailed as error:
        bench.fail(f"{row}: {error}")
    values = {name: 1e6 * bench.median(seconds) for name, seconds in times.items()}
    for peer, us in RATIOS:
        values[f"{peer}/{us}"] = median_ratio(times.get(peer), times.get(us))
    table.row(row, values, rounds=args.rounds)


def main():
    parser = bench.parser(__doc__, rounds=9, budget=0.2)
    parser.add_argument("--rows", nargs="+", default=ROWS, metavar="ROW", help="4B, 1MB, 64MB/16, ..., resnet50")
    parser.add_argument("--only", nargs="+", choices=COLUMNS, metavar="COLUMN", help="these alone")
    parser.add_argument(
        "--mpi4jax", type=Path, default=bench.DEV / "bench" / "mpi4jax", metavar="DIRECTORY", help="where it is"
    )
    args = parser.parse_args()
    bench.begin(args)
    titles = [*(name for name in COLUMNS if not args.only or name in args.only)]
    titles += [f"{peer}/{us}" for peer, us in RATIOS if peer in titles and us in titles]
    for ranks in args.np:
        with Referee() as referee:
            start(args, ranks, referee)
            table = bench.Table(args, f"allreduce of a framework's tensors, us, {ranks} processes", "size", titles)
            for row in args.rows:
                compare(args, table, referee, row)


if __name__ == "__main__":
    sys.exit(main())
