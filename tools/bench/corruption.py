"""Measures the detection of silent data corruption in an elastic job: what it finds, and what it costs.

    tools/bench/corruption.py [--workers N] [--flips N] [--clean N] [--megabytes N ...] [--tensors N ...] [--rounds N]

Prints one line of JSON for each section:
  flips  random bits of random elements, on a random rank but 0, in the parameters, in Adam's state and in the result of an
         allreduce: how many changed the state of that rank (rounding may absorb the lowest bits of a gradient), and of how many of
         these the next commit named the rank.
  clean  steps with a commit each without a flip: how many alarms there were.
  cost   of a commit with and without the comparison, medians in microseconds until all ranks have made it; the two alternate.
"""

import argparse
import contextlib
import io
import os
import re
import statistics
import subprocess
import sys
import time

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--workers", type=int, default=3)
parser.add_argument("--flips", type=int, default=100, help="of each kind")
parser.add_argument("--clean", type=int, default=10000, help="steps")
parser.add_argument("--megabytes", type=int, nargs="+", default=[1, 100])
parser.add_argument("--tensors", type=int, nargs="+", default=[4, 160])
parser.add_argument("--rounds", type=int, default=200)
parser.add_argument("--sections", nargs="+", default=["flips", "clean", "cost"])
parser.add_argument("--in-job", action="store_true", help=argparse.SUPPRESS)
args = parser.parse_args()

if not args.in_job:
    workers = str(args.workers)
    job = [
        "horovodrun",
        "-np",
        workers,
        "--min-np",
        workers,
        "-H",
        f"localhost:{workers}",
        "--on-corruption",
        "warn",
        "--max-failures",
        "1/10m",
    ]
    command = [*job, sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--in-job"]
    sys.exit(subprocess.call(command, env={**os.environ, "OMP_NUM_THREADS": "1"}))

import torch  # noqa: E402

import horovod.torch as hvd  # noqa: E402
from horovod.elastic import corruption  # noqa: E402
from rank_report import report  # noqa: E402

KINDS = ("parameters", "optimizer state", "allreduce")


class Training:
    """A small model that is trained with Adam, and a state that is committed after each step."""

    def __init__(self):
        torch.manual_seed(3)
        self.model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 1))
        adam = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.optimizer = hvd.DistributedOptimizer(adam, named_parameters=self.model.named_parameters())
        self.state = hvd.elastic.TorchState(self.model, self.optimizer, step=0)
        self.data = torch.Generator().manual_seed(hvd.rank())

    def step(self, change_gradients=lambda: None):
        self.optimizer.zero_grad()
        data = torch.randn(4, 8, generator=self.data)
        (self.model(data) - data.sum(1, keepdim=True)).pow(2).mean().backward()
        self.optimizer.synchronize()
        change_gradients()
        with self.optimizer.skip_synchronize():
            self.optimizer.step()
        self.state.step += 1

    def commit(self):
        """Returns the alarm that rank 0 gave; "": none."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.state.commit()
        return "".join(
            line
            for line in said.getvalue().splitlines()
            if re.search("silent data corruption|not compared any more", line)
        )

    def tensors(self, kind):
        if kind == "parameters":
            return [p.data for p in self.model.parameters()]
        if kind == "allreduce":
            return [p.grad for p in self.model.parameters()]
        states = self.optimizer.state.values()
        return [
            each for state in states for each in state.values() if isinstance(each, torch.Tensor) and each.dim() > 0
        ]

    def everything(self):
        whole = self.tensors("parameters") + self.tensors("optimizer state")
        return torch.cat([tensor.reshape(-1).view(torch.int32) for tensor in whole])

    def heal(self, source):
        hvd.broadcast_parameters(self.model.state_dict(), source)
        for number, tensor in enumerate(self.tensors("optimizer state")):
            hvd.broadcast_(tensor, source, f"heal.{number}")


def flip(tensors, random):
    """Flips a random bit of a random element."""
    tensor = tensors[torch.randint(len(tensors), (1,), generator=random).item()].view(torch.int32).reshape(-1)
    element = torch.randint(tensor.numel(), (1,), generator=random).item()
    bit = torch.randint(31, (1,), generator=random).item()
    tensor[element] ^= 1 << bit


def flips():
    training, random = Training(), torch.Generator().manual_seed(11)
    for _ in range(3):
        training.step()
        assert not training.commit()
    for kind in KINDS:
        counts = {"flipped": 0, "changed_the_state": 0, "found": 0, "false": 0}
        while counts["changed_the_state"] < args.flips:
            rank = torch.randint(1, hvd.size(), (1,), generator=random).item()
            mine = torch.Generator().manual_seed(torch.randint(1 << 30, (1,), generator=random).item())

            def change(kind=kind, rank=rank, mine=mine):
                if hvd.rank() == rank:
                    flip(training.tensors(kind), mine)

            training.step(change if kind == "allreduce" else lambda: None)
            if kind != "allreduce":
                change()
            everything = hvd.allgather(training.everything().reshape(1, -1), name="everything")
            has_changed = not bool((everything[rank] == everything[(rank + 1) % hvd.size()]).all())
            said = training.commit()
            names_rank = (
                re.search(rf"silent data corruption at commit \d+: rank {rank} on host \S+ differs", said) is not None
            )
            counts["flipped"] += 1
            counts["changed_the_state"] += has_changed
            counts["found"] += has_changed and names_rank
            counts["false"] += said != "" and not (has_changed and names_rank)
            training.heal((rank + 1) % hvd.size())
            assert not training.commit()
        report("flips", kind=kind, **counts)


def clean():
    training, alarms, begin = Training(), 0, time.monotonic()
    for _ in range(args.clean):
        training.step()
        alarms += training.commit() != ""
    report("clean", steps=args.clean, alarms=alarms, seconds=round(time.monotonic() - begin))


def cost(megabytes, tensors):
    elements = megabytes * 1000 * 1000 // 4 // 3 // tensors
    model = torch.nn.ParameterList([torch.nn.Parameter(torch.randn(elements)) for _ in range(tensors)])
    optimizer = torch.optim.Adam(model.parameters())
    taken = {corruption.OFF: [], corruption.WARN: []}
    state = hvd.elastic.TorchState(model, optimizer)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    for _ in range(4):
        optimizer.step()
        state.commit()
    job_policy = corruption.policy
    for _ in range(args.rounds):
        for policy, times in taken.items():
            corruption.policy = lambda policy=policy: policy
            hvd.barrier()
            begin = time.perf_counter()
            state.commit()
            hvd.barrier()  # a step waits for the last rank in any case
            times.append((time.perf_counter() - begin) * 1e6)
    corruption.policy = job_policy
    medians = torch.tensor([statistics.median(times) for times in taken.values()])
    off, warn = hvd.allreduce(medians, op=hvd.Max).tolist()
    report(
        "cost",
        state_MB=megabytes,
        tensors=3 * tensors,
        off_us=round(off),
        warn_us=round(warn),
        added_us=round(warn - off),
    )


hvd.init()
if "flips" in args.sections:
    flips()
if "clean" in args.sections:
    clean()
if "cost" in args.sections:
    for size in args.megabytes:
        for count in args.tensors:
            cost(size, count)
