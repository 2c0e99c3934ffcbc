"""Times whole training steps of small models on random images: forward, backward, communication, SGD.

    tools/bench/run training [--np 1 2] [--models digits resnet18]

Models: the network of examples/pytorch_mnist.py with 64 images of 28x28 per process and step, ResNet-18 with 8 images of 64x64.
Columns, in images per second of all processes together, medians of all rounds:
  local    without communication, in as many processes at once
  hvd      hvd.DistributedOptimizer
  ddp      DistributedDataParallel over Gloo
  horovod  Horovod 0.28.1, where there is one
  hvd/X   medians of the rounds' ratios; above 1: we are faster
"""

import bench
import gradients
from referee import JobFailed, Referee, median_ratio

BATCHES = {"digits": 64, "resnet18": 8}
WAYS = ["local", "hvd", "ddp"]


def show(table, label, times, images, rounds):
    values = {way: images / bench.median(seconds) for way, seconds in times.items()}
    for peer in set(times) - {"hvd"}:
        values[f"hvd/{peer}"] = median_ratio(times[peer], times["hvd"])
    table.row(label, values, rounds=rounds)


def main():
    parser = bench.parser(__doc__, rounds=7, budget=0.4)
    parser.add_argument("--models", nargs="+", choices=list(BATCHES), default=list(BATCHES))
    args = parser.parse_args()
    bench.begin(args)
    ways = gradients.ways_with_horovod(args, WAYS)
    for ranks in args.np:
        table = bench.Table(
            args,
            f"training, images/s, {ranks} process{'es' * (ranks > 1)}",
            "model",
            [*ways, *(f"hvd/{peer}" for peer in ways if peer != "hvd")],
        )
        for which in args.torch:
            with Referee() as referee:
                try:
                    gradients.start(args, ways, ranks, which, referee)
                    for model in args.models:
                        times = referee.contest(f"{model} - {BATCHES[model]}", args.rounds, args.budget)
                        show(table, f"{model} {bench.TORCH[which]}", times, ranks * BATCHES[model], args.rounds)
                except JobFailed as error:
                    bench.note(str(error))


if __name__ == "__main__":
    main()
