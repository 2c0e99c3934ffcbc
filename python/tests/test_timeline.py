"""The timeline, started and stopped at run time. On any number of ranks."""

import glob
import json
import os
import subprocess
import sys

import pytest
import torch

import horovod.torch as hvd


@pytest.fixture
def path(tmp_path):
    """Returns the name of rank 0's file, on all ranks."""
    return hvd.broadcast_object(str(tmp_path / "timeline.json"), name="path")


def record(path, work, mark_cycles=False):
    """The events of a timeline of `work()`; on ranks other than 0 None."""
    hvd.start_timeline(path, mark_cycles=mark_cycles)
    hvd.barrier()
    work()
    hvd.barrier()
    hvd.stop_timeline()
    hvd.barrier()
    if hvd.rank() != 0:
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def named(events, name, phase):
    return [event for event in events if event["name"] == name and event["ph"] == phase]


def ranks_of(events):
    return sorted({event["pid"] for event in events})


def test_events_of_all_ranks_are_in_one_file(path):
    tensors = [torch.ones(100), torch.ones(50)]
    events = record(path, lambda: hvd.grouped_allreduce(tensors, name="gradients", op=hvd.Sum))
    if events is None:
        return
    everyone = list(range(hvd.size()))
    for name, phase in (
        ("process_name", "M"),
        ("TIMELINE_START", "i"),
        ("NEGOTIATE_ALLREDUCE", "b"),
        ("NEGOTIATE_ALLREDUCE", "e"),
        ("ALLREDUCE", "X"),
    ):
        assert ranks_of(named(events, name, phase)) == everyone, name
    for event in named(events, "ALLREDUCE", "X"):
        assert event["args"] == {
            "tensors": 2,
            "bytes": 600,
            "dtype": "float32",
            "reduction": "sum",
            "names": [f"grouped_allreduce.gradients_{i}of2" for i in (1, 2)],
        }


def test_operations_of_all_ranks_overlap(path):
    """None can leave an allreduce before all are in it: so clocks must fit."""
    events = record(path, lambda: hvd.allreduce(torch.ones(1 << 18), name="x"))
    if events is None:
        return
    spans = [(event["ts"], event["ts"] + event["dur"]) for event in named(events, "ALLREDUCE", "X")]
    starts = named(events, "TIMELINE_START", "i")
    slack = 2 * max(event["args"]["clock_uncertainty_us"] for event in starts)
    assert len(spans) == hvd.size()
    assert max(begin for begin, _ in spans) <= min(end for _, end in spans) + slack
    for rank in range(hvd.size()):
        (queued,) = [e for e in named(events, "NEGOTIATE_ALLREDUCE", "b") if e["pid"] == rank]
        (planned,) = [e for e in named(events, "NEGOTIATE_ALLREDUCE", "e") if e["pid"] == rank]
        (run,) = [e for e in named(events, "ALLREDUCE", "X") if e["pid"] == rank]
        assert queued["ts"] <= planned["ts"] <= run["ts"] + run["dur"]


def test_activities_lie_within_operations(path):
    def work():
        for _ in range(20):
            hvd.grouped_allreduce([torch.ones(100), torch.ones(50)], name="g")

    events = record(path, work)
    if events is None:
        return
    operations = named(events, "ALLREDUCE", "X")
    assert len(operations) == 20 * hvd.size()
    for activity in named(events, "MEMCPY_IN_FUSION_BUFFER", "X"):
        begin, end = activity["ts"], activity["ts"] + activity["dur"]
        assert any(
            event["pid"] == activity["pid"]
            and event["tid"] == activity["tid"]
            and event["ts"] <= begin
            and end <= event["ts"] + event["dur"] + 0.001
            for event in operations
        )


def test_cycles_are_marked_if_asked_for(path):
    for marked in (False, True):
        events = record(path, lambda: hvd.barrier(), mark_cycles=marked)
        if events is not None:
            assert bool(named(events, "CYCLE_START", "i")) == marked


def test_events_are_in_the_file_while_it_is_recorded(path):
    hvd.start_timeline(path, mark_cycles=True)
    hvd.allreduce(torch.tensor([1.0, 2.0, 3.0]), name="test_allreduce")
    wanted = ["allreduce.test_allreduce", "NEGOTIATE_ALLREDUCE", '"ALLREDUCE"', "CYCLE_START"]
    while hvd.rank() == 0:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if all(word in text for word in wanted):
            break
    hvd.barrier()
    hvd.stop_timeline()


def test_what_is_outside_is_not_recorded(path):
    hvd.allreduce(torch.ones(2), name="before")
    events = record(path, lambda: hvd.allgather(torch.ones(2), name="within"))
    hvd.allreduce(torch.ones(2), name="after")
    if events is not None:
        text = json.dumps(events)
        assert "within" in text and "before" not in text and "after" not in text


@pytest.mark.several_ranks
def test_process_sets_have_their_own_threads(path, monkeypatch):
    monkeypatch.setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1")
    process_set = hvd.add_process_set([0])
    number = process_set.process_set_id
    events = record(path, lambda: _allreduce_twice(process_set))
    hvd.remove_process_set(process_set)
    if events is None:
        return
    threads = {event["tid"] for event in named(events, "ALLREDUCE", "X")}
    assert len(threads) == 2
    names = {event["args"]["name"] for event in named(events, "thread_name", "M") if event["pid"] == 0}
    assert f"operations of process set {number}" in names


def _allreduce_twice(process_set):
    hvd.allreduce(torch.ones(2), name="all")
    if process_set.included():
        hvd.allreduce(torch.ones(2), name="some", process_set=process_set)


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    missing = str(tmp_path / "missing" / "timeline.json")
    if hvd.rank() == 0:
        with pytest.raises(ValueError, match=r"missing/timeline\.json"):
            hvd.start_timeline(missing)
    else:
        hvd.start_timeline(missing)
    hvd.stop_timeline()


def test_variables_count_that_are_set_between_two_worlds(path, monkeypatch):
    hvd.shutdown()
    with monkeypatch.context() as patch:
        patch.setenv("HOROVOD_TIMELINE", path)
        patch.setenv("HOROVOD_TIMELINE_MARK_CYCLES", "1")
        hvd.init()
        hvd.allreduce(torch.ones(2), name="some")
        first = hvd.rank() == 0
        hvd.barrier()
        hvd.shutdown()
    hvd.init()
    if first:
        (of_world,) = glob.glob(path.replace(".json", ".epoch*.json"))
        with open(of_world, encoding="utf-8") as file:
            events = json.load(file)
        assert named(events, "ALLREDUCE", "X") and named(events, "CYCLE_START", "i")


WITHOUT = """
import horovod.torch as hvd
for call in (lambda: hvd.start_timeline("x"), hvd.stop_timeline):
    try:
        call()
    except ValueError as error:
        assert "not been initialized" in str(error), error
    else:
        raise SystemExit("no error before init")
hvd.init()
try:
    hvd.start_timeline("x")
except ValueError as error:
    assert "HOROVOD_TIMELINE" in str(error), error
else:
    raise SystemExit("no error although HOROVOD_TIMELINE is not set")
hvd.stop_timeline()
"""


def test_without_the_variable_it_cannot_be_started(tmp_path):
    drop = ("HOROVOD_TIMELINE", "HOROVOD_AGENT_SOCKET", "HOROVOD_WORKER_ID")
    environment = {name: value for name, value in os.environ.items() if name not in drop}
    subprocess.run([sys.executable, "-c", WITHOUT], env=environment, cwd=tmp_path, check=True, timeout=120)
    assert not (tmp_path / "x").exists()
