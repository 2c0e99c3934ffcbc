"""What a commit costs: ours, and copying the state dicts deeply, which is what Horovod's does.

    tools/bench/commit.py [--megabytes N ...] [--rounds N]

Starts an elastic job of one worker, so that commits go where they outlive it. Per size (parameters and Adam's state together) it takes turns between the two
and prints the medians, also of the processor's time, which other programs disturb less. Copies of tensors of 32 MB and more get fresh memory each time from
glibc, those of smaller ones do not: see --tensors.
"""

import argparse
import copy
import json
import os
import statistics
import subprocess
import sys
import time

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--megabytes", type=int, nargs="+", default=[100, 1000])
parser.add_argument("--tensors", type=int, default=64, help="parameters of the model")
parser.add_argument("--rounds", type=int, default=9)
parser.add_argument("--in-job", action="store_true", help=argparse.SUPPRESS)
args = parser.parse_args()

if not args.in_job:
    command = ["horovodrun", "-np", "1", "--min-np", "1", "-H", "localhost:1", sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--in-job"]
    sys.exit(subprocess.call(command, env={**os.environ, "OMP_NUM_THREADS": "1"}))

import horovod.torch as hvd  # noqa: E402
import torch  # noqa: E402
from horovod import _ffi  # noqa: E402


def training(megabytes):
    elements = megabytes * 1000 * 1000 // 4 // 3 // args.tensors
    model = torch.nn.ParameterList([torch.nn.Parameter(torch.randn(elements)) for _ in range(args.tensors)])
    optimizer = torch.optim.Adam(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    return model, optimizer


def milliseconds(call):
    """Elapsed, and spent on a processor."""
    start, started = time.perf_counter(), time.thread_time()
    call()
    return (time.perf_counter() - start) * 1000, (time.thread_time() - started) * 1000


def main():
    hvd.init()
    assert _ffi.store_begin(1) is not None, "there is no store: this is no elastic job"
    for megabytes in args.megabytes:
        model, optimizer = training(megabytes)
        state = hvd.elastic.TorchState(model, optimizer)
        ours, deep, kept = [], [], None
        first, _ = milliseconds(state.commit)
        for _ in range(args.rounds):
            ours.append(milliseconds(state.commit))

            def copy_deeply():
                nonlocal kept
                kept = copy.deepcopy((model.state_dict(), optimizer.state_dict()))

            deep.append(milliseconds(copy_deeply))
        figures = {"torch": torch.__version__, "state_MB": megabytes, "tensors": args.tensors, "first_commit_ms": round(first, 1)}
        for which, name in enumerate(("", "cpu_")):
            commit, deepcopy = (statistics.median(times[which] for times in series[1:]) for series in (ours, deep))
            figures[name + "commit_ms"], figures[name + "deepcopy_ms"] = round(commit, 2), round(deepcopy, 2)
            figures[name + "commit_ms_per_GB"] = round(commit * 1000 / megabytes, 1)
            figures[name + "deepcopy_ms_per_GB"] = round(deepcopy * 1000 / megabytes, 1)
            figures[name + "ratio"] = round(deepcopy / commit, 1)
        print(json.dumps(figures), flush=True)
        del state, kept


main()
