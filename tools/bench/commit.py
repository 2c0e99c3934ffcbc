"""Measures the cost of commits, restores and syncs of an elastic job, next to the speed of the machine's memory and the job's transport.

    tools/bench/commit.py [--workers N ...] [--megabytes N ...] [--tensors N ...] [--rounds N]

Starts an elastic job, so that commits go to the agent's memory. Prints one line of JSON for each section; the quantities in it are measured in
turns, and medians are printed:
  commit  of so many megabytes (parameters and Adam's state together), memcpy of as many bytes by one thread into memory that was touched before, and
          Horovod's way, a deep copy of the state dicts; restore. Several workers do so at the same time. Also the processor time, which
          other programs disturb less. The first and second commits allocate their memory.
  tiny    state: the cost of a commit apart from copying, and of the operation alone by which all ranks agree on it.
  sync    from rank 0 to newcomers, whose optimizer has no state yet; to newcomers with memory that was used before (warm); to ranks that have
          committed the same state (survivors); and hvd.broadcast of as many bytes in one tensor.
"""

import argparse
import copy
import ctypes
import os
import statistics
import subprocess
import sys
import time

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
parser.add_argument("--megabytes", type=int, nargs="+", default=[100, 1000])
parser.add_argument("--tensors", type=int, nargs="+", default=[64, 1000], help="parameters of the model")
parser.add_argument("--sections", nargs="+", default=["commit", "tiny", "sync"])
parser.add_argument("--rounds", type=int, default=9)
parser.add_argument("--in-job", action="store_true", help=argparse.SUPPRESS)
args = parser.parse_args()

if not args.in_job:
    for workers in args.workers:
        job = ["horovodrun", "-np", str(workers), "--min-np", str(workers), "-H", f"localhost:{workers}"]
        command = [*job, sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--in-job"]
        code = subprocess.call(command, env={**os.environ, "OMP_NUM_THREADS": "1"})
        if code != 0:
            sys.exit(code)
    sys.exit(0)

import torch  # noqa: E402

import horovod.torch as hvd  # noqa: E402
from horovod import _ffi  # noqa: E402
from horovod.elastic import commit_protocol, commits  # noqa: E402
from rank_report import report  # noqa: E402


def training(megabytes, tensors, trained=True):
    elements = megabytes * 1000 * 1000 // 4 // 3 // tensors
    model = torch.nn.ParameterList([torch.nn.Parameter(torch.randn(elements)) for _ in range(tensors)])
    optimizer = torch.optim.Adam(model.parameters())
    if trained:
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return model, optimizer


def milliseconds(call):
    """Returns the elapsed time and the processor time. All ranks start together."""
    hvd.barrier()
    start, started = time.perf_counter(), time.thread_time()
    call()
    return (time.perf_counter() - start) * 1000, (time.thread_time() - started) * 1000


def alternately(calls):
    """The medians of the named calls, elapsed and on a processor, of the rank that took longest; the first round does not count."""
    taken = {name: [] for name in calls}
    for round_number in range(args.rounds + 1):
        for name, call in calls.items():
            measured = milliseconds(call)
            if round_number > 0:
                taken[name].append(measured)
    medians = torch.tensor([[statistics.median(times) for times in zip(*series)] for series in taken.values()])
    medians = hvd.allreduce(medians, op=hvd.Max).tolist()
    return dict(zip(taken, medians))


def commit(megabytes, tensors):
    model, optimizer = training(megabytes, tensors)
    state = hvd.elastic.TorchState(model, optimizer)
    first, second = milliseconds(state.commit)[0], milliseconds(state.commit)[0]
    size = megabytes * 1000 * 1000
    source, touched = (torch.ones(size, dtype=torch.uint8) for _ in range(2))
    kept = []

    def copy_deeply():
        kept[:] = [copy.deepcopy((model.state_dict(), optimizer.state_dict()))]

    calls = {
        "memcpy": lambda: ctypes.memmove(touched.data_ptr(), source.data_ptr(), size),
        "commit": state.commit,
        "deepcopy": copy_deeply,
        "restore": state.restore,
    }
    medians = alternately(calls)
    figures = {
        "state_MB": megabytes,
        "tensors": tensors,
        "first_commit_ms": round(first, 1),
        "second_commit_ms": round(second, 1),
    }
    for which, prefix in enumerate(("", "cpu_")):
        figures.update((prefix + name + "_ms", round(medians[name][which], 2)) for name in calls)
        figures[prefix + "commit_ms_per_GB"] = round(medians["commit"][which] * 1000 / megabytes, 1)
        for name in ("commit", "deepcopy", "restore"):
            figures[prefix + name + "_per_memcpy"] = round(medians[name][which] / medians["memcpy"][which], 2)
    report("commit", **figures)


def tiny():
    state = hvd.elastic.TorchState(*training(1, 4), batch=0)

    def often(call, count=100):
        def calls():
            for _ in range(count):
                call()

        return calls

    calls = {
        "commit": often(state.commit),
        "operation": often(lambda: commits.end(commits.begin())),
        "check_host_updates": often(state.check_host_updates),
        "restore": often(state.restore),
    }
    small = hvd.elastic.TorchState(torch.nn.Linear(2, 2), batch=0)
    calls["commit_of_2_tensors"] = often(small.commit)
    medians = alternately(calls)
    report("tiny", **{name + "_us": round(elapsed * 10, 1) for name, (elapsed, _) in medians.items()})


def sync(megabytes, tensors):
    """Measures syncs. Newcomers are created anew for each sync; creating them is not measured."""
    is_root = hvd.rank() == 0
    state = hvd.elastic.TorchState(*training(megabytes, tensors), batch=7)
    for _ in range(2):
        state.commit()  # what a job has done that somebody comes to
    buffer = torch.ones(megabytes * 1000 * 1000, dtype=torch.uint8)
    series = {"sync": [], "warm": [], "survivors": [], "broadcast": []}
    for _ in range(args.rounds):
        if not is_root:
            state = None
            state = hvd.elastic.TorchState(*training(megabytes, tensors, trained=False), batch=0)
        series["sync"].append(milliseconds(lambda s=state: commit_protocol.synchronize(s))[0])
        if not is_root:
            state._placed = None  # as long as it has that, it only compares what it gets
        series["warm"].append(milliseconds(lambda s=state: commit_protocol.synchronize(s))[0])
        series["survivors"].append(milliseconds(lambda s=state: commit_protocol.synchronize(s))[0])
        series["broadcast"].append(milliseconds(lambda: hvd.broadcast_(buffer, 0, "bench"))[0])
    assert state.batch == 7 and len(state.optimizer.state_dict()["state"]) == tensors
    medians = torch.tensor([statistics.median(times) for times in series.values()])
    speeds = [megabytes / ms for ms in hvd.allreduce(medians, op=hvd.Max).tolist()]
    report(
        "sync",
        state_MB=megabytes,
        tensors=tensors,
        sync_GB_per_s=round(speeds[0], 2),
        warm_GB_per_s=round(speeds[1], 2),
        survivors_GB_per_s=round(speeds[2], 2),
        transport_GB_per_s=round(speeds[3], 2),
        ratio=round(speeds[0] / speeds[3], 2),
        warm_ratio=round(speeds[1] / speeds[3], 2),
        survivors_ratio=round(speeds[2] / speeds[3], 2),
    )


def main():
    hvd.init()
    assert _ffi.store_begin(1) is not None, "there is no store: this is no elastic job"
    if "tiny" in args.sections:
        tiny()
    for section in (commit, sync):
        for megabytes in args.megabytes:
            for tensors in args.tensors:
                if section.__name__ in args.sections and (section is not sync or hvd.size() > 1):
                    section(megabytes, tensors)


main()
