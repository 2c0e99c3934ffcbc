"""Times a training step's gradients: made ready in backward order by a backward() that does nothing else, and averaged over all processes.

    tools/bench/run gradients [--np 2 4] [--models resnet50 gpt]

Columns, in milliseconds per step on the slowest rank, medians of all rounds:
  local       the step without communication, in as many processes at once
  hvd         hvd.DistributedOptimizer
  ddp         DistributedDataParallel over Gloo; ddp view: with gradient_as_bucket_view; ddp-hvd and hvd-view: over our backend of torch.distributed
  horovod     Horovod 0.28.1, where there is one
  X comm      X less local: what communication adds to the step
  hvd/ddp     our communication as a part of DDP's, and of DDP's with views: medians of the rounds' ratios
  d-hvd/hvd   DDP's communication over our backend, as a multiple of DistributedOptimizer's; dv-hvd/hvd: with views
"""

import bench
from referee import JobFailed, Referee, median_ratio

MODELS = {"resnet50": "161 tensors, 102 MB", "gpt": "208 tensors, 63 MB"}
WAYS = ["local", "hvd", "ddp", "ddp-view", "ddp-hvd", "hvd-view"]


def command_of(args, way, ranks, which, referee):
    worker = [bench.python_of(which), str(bench.HERE / "worker_steps.py"), way, referee.socket_path, way]
    if way == "hvd":
        return bench.horovodrun(args, ranks) + worker, bench.environment(args, which)
    if way == "horovod":
        launcher, python, environment = bench.original_horovod(args, ranks)
        return [*launcher, python, worker[1], "hvd", *worker[3:]], environment
    variables = bench.environment(args, which) if way in ("ddp-hvd", "hvd-view") else None
    return bench.forked([*worker, referee.scratch("store-" + way), "RANK", str(ranks)], ranks), variables


def ways_with_horovod(args, ways):
    return [*ways, "horovod"] if bench.original_horovod(args, 1) else ways


def start(args, ways, ranks, which, referee):
    for way in ways:
        command, environment = command_of(args, way, ranks, which, referee)
        referee.start(way, command, ranks, environment)


def communication(times, way):
    """The time that communication adds in each round."""
    return [total - local for total, local in zip(times[way], times["local"])]


def show(table, model, which, times, rounds):
    ours, ddp, view, group, group_view = (communication(times, way) for way in WAYS[1:])
    values = {way: 1000 * bench.median(seconds) for way, seconds in times.items()}
    values.update(
        {
            "hvd comm": 1000 * bench.median(ours),
            "ddp comm": 1000 * bench.median(ddp),
            "view comm": 1000 * bench.median(view),
            "d-hvd comm": 1000 * bench.median(group),
        }
    )
    values.update(
        {
            "hvd/ddp": median_ratio(ours, ddp),
            "hvd/view": median_ratio(ours, view),
            "d-hvd/hvd": median_ratio(group, ours),
            "dv-hvd/hvd": median_ratio(group_view, ours),
        }
    )
    if "horovod" in times:
        original = communication(times, "horovod")
        values.update({"horovod comm": 1000 * bench.median(original), "hvd/horovod": median_ratio(ours, original)})
    table.row(f"{model} {bench.TORCH[which]}", values, tensors=MODELS[model], rounds=rounds)


def main():
    parser = bench.parser(__doc__, rounds=9, budget=0.3)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    args = parser.parse_args()
    bench.begin(args)
    ways = ways_with_horovod(args, WAYS)
    titles = [
        *ways,
        "hvd comm",
        "ddp comm",
        "view comm",
        "d-hvd comm",
        "hvd/ddp",
        "hvd/view",
        "d-hvd/hvd",
        "dv-hvd/hvd",
    ]
    if "horovod" in ways:
        titles += ["horovod comm", "hvd/horovod"]
    for ranks in args.np:
        table = bench.Table(args, f"gradients of a step, ms, {ranks} processes", "model", titles)
        for which in args.torch:
            with Referee() as referee:
                try:
                    start(args, ways, ranks, which, referee)
                    for model in args.models:
                        show(
                            table,
                            model,
                            which,
                            referee.contest(f"{model}-gradients - 0", args.rounds, args.budget),
                            args.rounds,
                        )
                except JobFailed as error:
                    bench.note(str(error))


if __name__ == "__main__":
    main()
