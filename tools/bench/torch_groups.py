"""Times torch.distributed over our backend, beside Gloo, our own functions, our communicator and MPI, in turn.

    tools/bench/run torch_groups [--np 2 4]

Columns, in microseconds per call on the slowest rank, medians of all rounds:
  c++    our communicator, called from C++ (without the engine: nothing is negotiated)
  hvd    hvd.allreduce_() and the like from Python
  group  torch.distributed over the backend hvd
  gloo   torch.distributed over Gloo
  mpi    Open MPI, from C
"group-c++" is a difference in microseconds, the others are the medians of the rounds' ratios. gather-into and reducescatter are what FSDP2 calls;
there-and-back is a message from rank 0 to rank 1 and one back. A size is that of a rank's larger buffer.
"""

import bench
from referee import JobFailed, Referee, median_ratio

ROWS = [
    ("allreduce", ["4B", "64KB", "1MB", "64MB"]),
    ("gather-into", ["64MB"]),
    ("reducescatter", ["64MB"]),
    ("there-and-back", ["4B", "64KB", "64MB"]),
]
TITLES = ["c++", "hvd", "group", "gloo", "mpi", "group-c++", "group/hvd", "gloo/group", "mpi/group"]


def contestants(args, ranks, referee):
    """{name: (command, environment)}"""
    which = args.torch[-1]
    python, script = bench.python_of(which), str(bench.HERE / "worker_collectives.py")

    def grouped(kind):
        store = referee.scratch("store-" + kind)
        return bench.forked([python, script, kind, referee.socket_path, kind, store, "RANK", str(ranks)], ranks)

    return {
        "c++": ([str(args.programs / "communicator_bench"), "shm", str(ranks), referee.socket_path, "c++"], None),
        "hvd": (
            [*bench.horovodrun(args, ranks), python, script, "hvd", referee.socket_path, "hvd"],
            bench.environment(args, which),
        ),
        "hvd-group": (grouped("hvd-group"), bench.environment(args, which)),
        "gloo": (grouped("gloo"), None),
        "mpi": ([*bench.mpirun(ranks), str(args.programs / "mpi_worker"), referee.socket_path, "mpi"], None),
    }


def show(table, label, times, rounds):
    times = {name.replace("hvd-group", "group"): seconds for name, seconds in times.items()}
    values = {name: 1e6 * bench.median(seconds) for name, seconds in times.items()}
    if "c++" in times:
        values["group-c++"] = values["group"] - values["c++"]
    values["group/hvd"] = median_ratio(times["group"], times.get("hvd"))
    for peer in ("gloo", "mpi"):
        values[f"{peer}/group"] = median_ratio(times.get(peer), times["group"])
    table.row(label, values, rounds=rounds)


def main():
    parser = bench.parser(__doc__, rounds=9, budget=0.05)
    args = parser.parse_args()
    bench.begin(args)
    for ranks in args.np:
        with Referee() as referee:
            for name, (command, environment) in contestants(args, ranks, referee).items():
                try:
                    referee.start(name, command, ranks, environment)
                except (JobFailed, FileNotFoundError) as error:
                    bench.note(f"without {name}: {error}")
            table = bench.Table(args, f"torch.distributed, float32, {ranks} processes", "operation", TITLES)
            for operation, sizes in ROWS:
                for size in sizes:
                    what = f"{operation} float32 {bench.size_of(size)}"
                    show(table, f"{operation} {size}", referee.contest(what, args.rounds, args.budget), args.rounds)


if __name__ == "__main__":
    main()
