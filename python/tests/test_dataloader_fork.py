"""Children of a process that uses Horovod: DataLoader workers, plain forks and new interpreters. Runs
on any number of ranks."""

import os
import subprocess
import sys

import pytest
import torch

import horovod.torch as hvd
from horovod.runner.launch import find_program


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.tensor([index**2, hvd.rank(), hvd.size()])  # ranks are readable in children


@pytest.mark.parametrize("persistent", [False, True])
def test_dataloader_with_forked_workers(persistent):
    loader = torch.utils.data.DataLoader(
        Squares(),
        batch_size=8,
        num_workers=2,
        multiprocessing_context="fork",
        persistent_workers=persistent,
    )
    for _ in range(2):
        total = 0
        for batch in loader:
            assert batch[:, 1].tolist() == [hvd.rank()] * 8
            total += hvd.allreduce(batch[:, 0].contiguous(), op=hvd.Sum, name="squares").sum().item()
        assert total == hvd.size() * sum(i**2 for i in range(64))


def in_child(function):
    """Runs `function` in a forked child; returns whether it returned True."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = 0 if function() is True else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_child_can_read_but_not_communicate():
    kept = [hvd.allgather(torch.arange(100.0))]

    def child():
        kept.pop()  # frees the runtime's memory in the parent only
        try:
            hvd.allreduce(torch.ones(1))
        except hvd.HorovodInternalError as error:
            return "forked" in str(error) and hvd.size() > hvd.rank() >= 0
        return False

    assert in_child(child)
    assert torch.equal(kept[0], torch.arange(100.0).repeat(hvd.size()))
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == hvd.size()


@pytest.mark.several_ranks
def test_child_that_runs_the_script_again_leaves_the_world_alone():
    """As a DataLoader's workers do under spawn, in a script that calls hvd.init() when imported."""
    script = "import horovod.torch as hvd; hvd.init()"
    child = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert child.returncode == 1
    error = child.stderr.splitlines()[-1]
    assert f"Process {os.getpid()} has called hvd.init()" in error
    assert "under if __name__ == '__main__'" in error
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == hvd.size()


@pytest.mark.several_ranks
def test_child_may_take_the_place_of_a_process_that_has_left():
    script = "import os, horovod.torch as hvd; hvd.init(); print(os.environ['HOROVOD_MEMBER'])"
    again = (
        "import subprocess, sys, horovod.torch as hvd; hvd.init(); hvd.shutdown(); "
        "subprocess.run([sys.executable, '-c', sys.argv[1]], check=True)"
    )
    # In a separate job, because its rank belongs to the first process that asks for it.
    command = [sys.executable, "-c", again, script]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HOROVOD_")}
    launched = [find_program("horovodrun"), "-np", "1", *command]
    subprocess.run(launched, env=environment, check=True, timeout=100)
