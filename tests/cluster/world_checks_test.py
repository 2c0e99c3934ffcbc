"""The checks of worlds find the faults that they are for."""

import pytest

import world_checks

BEGAN = {1: 0, 2: 2}  # steps by epoch


def begun(time, epoch, rank, host, **more):
    return {
        "time": time,
        "world": epoch,
        "rank": rank,
        "size": 2,
        "steps": BEGAN.get(epoch, 0),
        "host": host,
        "pid": 7,
        **more,
    }


def stepped(time, epoch, step, host, **more):
    return {"time": time, "event": "stepped", "world": epoch, "step": step, "host": host, "pid": 7, **more}


WORLDS = [
    begun(0, 1, 0, "a", weights=1),
    begun(0, 1, 1, "b", weights=2),
    begun(5, 2, 0, "a", weights=12),
    begun(5, 2, 1, "c", weights=12),
]
STEPS = [stepped(step, 1, step, host, weights=10 + step) for step in (1, 2, 3) for host in "ab"]
STEPS += [stepped(3 + step, 2, step, host, weights=10 + step) for step in (3, 4) for host in "ac"]


class Log:
    def __init__(self, entries):
        self.entries = entries

    def all(self, key):
        return [entry for entry in self.entries if key in entry]


def test_check_sound_training_is_content():
    world_checks.check(Log(WORLDS + STEPS))


FAULTS = {
    "is held by": begun(1, 1, 0, "c"),
    "has 2 members, or 3": {**begun(1, 1, 1, "b"), "size": 3},
    "and a rank 2": begun(1, 1, 2, "c"),
    "one process has two ranks": begun(1, 3, 1, "a"),
    "begins epoch 1 after epoch 2": begun(6, 1, 0, "a"),
    "which it did not begin": stepped(6, 2, 3, "b"),
    "after a later epoch had begun": stepped(6.5, 1, 4, "b"),
    "has two results": stepped(2, 1, 2, "a", weights=99),
}


@pytest.mark.parametrize("what", FAULTS)
def test_check_one_fault_is_found(what):
    extra = [begun(1, 3, 0, "a")] if what == "one process has two ranks" else []
    with pytest.raises(AssertionError, match=what):
        world_checks.check(Log(WORLDS + STEPS + [*extra, FAULTS[what]]))


def test_check_stopped_process_that_ends_its_step_is_content():
    world_checks.check(Log(WORLDS + STEPS[1:] + [stepped(6.5, 1, 1, "b")]))


def test_check_stopped_process_that_trains_on_is_found():
    late = [stepped(6.5, 1, 2, "b"), stepped(7.5, 1, 3, "b")]
    with pytest.raises(AssertionError, match="trains on in epoch 1"):
        world_checks.check(Log(WORLDS + STEPS + late))


def test_check_torn_commit_is_found():
    torn = [{**entry, "weights": 13} if entry["world"] == 2 else entry for entry in WORLDS]
    with pytest.raises(AssertionError, match="other weights than"):
        world_checks.check(Log(torn + STEPS))


def test_check_world_that_begins_at_an_unreached_step_is_found():
    with pytest.raises(AssertionError, match="which no rank has completed"):
        world_checks.check(Log(WORLDS + STEPS + [{**begun(9, 3, 0, "a", weights=4), "steps": 9}]))
