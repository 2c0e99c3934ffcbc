"""A newcomer that passes the runs of a script that have ended, on the second of two ranks."""

import pytest
import torch

import horovod.torch as hvd
from agents_store import new_process
from horovod.common import _process
from horovod.elastic import commits
from horovod.elastic.runs import runs
from run_states import STEPS, Killed, add, object_state, torch_state, total


def is_newcomer():
    return hvd.rank() == 1


@pytest.fixture
def two_ranks(monkeypatch):
    monkeypatch.setenv("HOROVOD_ELASTIC", "1")
    monkeypatch.setattr(commits, "_newest", 0)
    yield
    _process.process.no_collectives = ""


@pytest.mark.several_ranks
@pytest.mark.parametrize("make", [torch_state, object_state])
def test_newcomer_passes_the_runs_of_the_others(two_ranks, monkeypatch, make):
    begins = []

    @hvd.elastic.run
    def train(state, amount):
        begins.append(amount)
        while state.step < STEPS:
            add(state, amount)
            state.step += 1
            state.commit()
        return total(state)

    for amount in (1.0, 10.0):
        assert train(make(), amount) == STEPS * amount
    hvd.barrier()
    begins.clear()
    if is_newcomer():
        new_process(monkeypatch)
        for amount in (1.0, 10.0):
            state = make()
            assert train(state, amount) == total(state) == STEPS * amount
            with pytest.raises(
                RuntimeError, match=r"A collective between two runs: run [12] under hvd.elastic.run was over"
            ):
                hvd.allreduce(torch.ones(1))
            with pytest.raises(RuntimeError, match="A collective between two runs"):
                hvd.broadcast_object(1, 0)
        assert begins == []
    state = make()
    assert train(state, 100.0) == total(state) == STEPS * 100.0
    assert begins == [100.0]
    assert hvd.allgather_object(runs.number) == [3] * hvd.size()
    hvd.barrier()


@pytest.mark.several_ranks
def test_ranks_that_pass_a_run_together_may_run_collectives(two_ranks, monkeypatch, tmp_path):
    """This is the case in a restarted job, where only rank 0 can read the folder."""
    folder = str(tmp_path / "checkpoints") if hvd.rank() == 0 else str(tmp_path / "other")

    begins = []

    def script(dies):
        sums = []
        begins.clear()

        @hvd.elastic.run
        def train(state, amount):
            begins.append((amount, state.step))
            while state.step < STEPS:
                add(state, amount)
                state.step += 1
                state.commit()
                state._checkpoints.wait()
                if dies and amount == 10.0:
                    raise Killed
            return total(state)

        for amount in (1.0, 10.0):
            state = torch_state(checkpoint_dir=folder)
            result = train(state, amount)
            sums.append((result, total(state), float(hvd.allreduce(torch.ones(1), op=hvd.Sum))))
        return sums

    with pytest.raises(Killed):
        script(True)
    hvd.barrier()
    runs.forget()
    monkeypatch.setattr(commits, "_newest", 0)
    hvd.barrier()
    assert script(False) == [(STEPS * n, STEPS * n, hvd.size()) for n in (1.0, 10.0)]
    assert begins == [(10.0, 1)]
