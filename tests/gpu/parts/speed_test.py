"""Speed beside that of peers and of the hardware, measured in the same program in turns."""

import sys

import pytest

from conftest import group_figures, numbers


def rows_of(result):
    assert result.returncode == 0, result.stdout + result.stderr
    return numbers(result.stdout)


def test_steps_of_one_process(horovodrun, job, figure):
    for row in rows_of(horovodrun.run("-np", 1, sys.executable, job("steps.py"), timeout=60)):
        figure(f"{row['model']}: a step without DistributedOptimizer", row["plain_us"], "us")
        figure(f"{row['model']}: added by DistributedOptimizer, one process", row["added_us"], "us")


def test_bus_bandwidth_beside_torch(horovodrun, job, figure, tmp_path):
    result = horovodrun.run(
        "-np", 2, "-x", f"PEER_STORE={tmp_path / 'store'}", sys.executable, job("bandwidth.py"), timeout=60
    )
    for row in rows_of(result):
        figure(f"allreduce of {row['bytes']} B, 2 ranks on one GPU: ours", row["ours_us"], "us")
        if "torch_us" in row:
            figure(f"allreduce of {row['bytes']} B, 2 ranks on one GPU: torch's", row["torch_us"], "us")
            figure(f"allreduce of {row['bytes']} B: torch's time over ours", row["ratio"], "", "1.0")


@pytest.mark.parametrize("ranks", [1, 2])
def test_ways_to_reduce_many_tensors(horovodrun, job, figure, ranks):
    rows = rows_of(horovodrun.run("-np", ranks, sys.executable, job("grouping.py"), timeout=60))
    group_figures(figure, f"{ranks} ranks", rows)


def test_new_worlds(horovodrun, job, figure):
    for what, taken in rows_of(horovodrun.run("-np", 2, sys.executable, job("new_worlds.py"), timeout=60))[0].items():
        figure(f"a new world: {what}", taken, "ms")


@pytest.mark.parametrize("variable", ["ONE_HOST=1", "HOROVOD_GPU_OPERATIONS=HOST"])
def test_way_through_host_memory(horovodrun, job, figure, variable):
    """Ranks that share the GPU are staged by the runtime, and where the variable forbids NCCL."""
    result = horovodrun.run("-np", 2, "-x", variable, sys.executable, job("host_path.py"), timeout=60)
    for row in rows_of(result):
        name = f"{row['bytes'] >> 20} MiB, {variable}"
        for what, value in row["GBps"].items():
            figure(f"{name}: {what}", value, "GB/s")
        figure(f"{name}: share of the limit", row["share"], "", "0.8")
        figure(f"{name}: allreduce of 4 B", row["least_us"], "us")


def test_commits(horovodrun, job, figure):
    arguments = ("-np", 1, "--min-np", 1, "-H", "localhost:1", sys.executable, job("commits.py"))
    for row in rows_of(horovodrun.run(*arguments, timeout=60)):
        state = f"{row['megabytes']} MB of GPU state"
        for name, value in row["GBps"].items():
            figure(f"{state}: {name}", value, "GB/s")
        figure(f"{state}: first commit", row["first_commit_ms"], "ms")
        if "lock_ms" in row:
            figure(f"{state}: page-locking as much memory", row["lock_ms"], "ms")
        figure(f"{state}: memcpy's time over commit's", row["share"], "", "0.8")
        figure(f"{state}: memcpy's time over restore's", row["share_back"], "", "0.8")
