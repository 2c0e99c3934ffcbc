"""Several elastic runs in one script: which commit, checkpoint and sync belongs to which, and how a process that starts later
passes those that have ended. In one process.
"""

import pytest

import horovod.torch as hvd
from agents_store import new_process
from horovod import _ffi
from horovod.common import _process
from horovod.common.exceptions import HorovodInternalError
from horovod.elastic import commits, loop
from horovod.elastic.runs import CanNotPass, runs
from run_states import STEPS, Killed, add, object_state, torch_state, total


@pytest.fixture
def elastic(store, monkeypatch):
    monkeypatch.setenv("HOROVOD_ELASTIC", "1")
    yield store
    commits._newest = 0
    _process.process.no_collectives = ""


def folds(make, count, dies=None, steps=STEPS, **values):
    """Trains so many folds of so many steps; ends in that of `dies` after its second commit. Returns what each has returned, what is in its state
    afterwards, and the step at which it began.
    """
    begins = {}

    @hvd.elastic.run
    def train(state, fold):
        begins.setdefault(fold, state.step)
        while state.step < steps:
            add(state, fold + 1)
            state.step += 1
            state.commit()
            if getattr(state, "_checkpoints", None):
                state._checkpoints.wait()
            if fold == dies and state.step == 2:
                raise Killed
        return total(state), [state.step]

    found = []
    for fold in range(count):
        state = make(**values)
        found.append((train(state, fold), (total(state), state.step)))
    return found, begins


def breaks(error):
    raise error


def expected(count):
    return [((STEPS * (fold + 1.0), [STEPS]), (STEPS * (fold + 1.0), STEPS)) for fold in range(count)]


@pytest.mark.parametrize("make", [torch_state, object_state])
@pytest.mark.parametrize("dies", [0, 1, 2])
def test_successor_passes_runs_that_have_ended(elastic, monkeypatch, capsys, make, dies):
    with pytest.raises(Killed):
        folds(make, 3, dies)
    new_process(monkeypatch)
    capsys.readouterr()
    found, begins = folds(make, 3)
    assert found == expected(3)
    assert begins == {fold: 2 if fold == dies else 0 for fold in range(dies, 3)}
    said = capsys.readouterr().err.splitlines()
    passed = [f"Horovod: run {n} of the script is over: going on with what it returned" for n in range(1, dies + 1)]
    assert said[: len(passed)] == passed and "going on from commit" in said[len(passed)]


def test_successor_passes_runs_in_the_next_world_if_the_first_one_breaks(elastic, monkeypatch):
    """Its commit is of a later run. If it counted in the next world, no rank there would lack a state."""
    with pytest.raises(Killed):
        folds(torch_state, 3, dies=2)
    new_process(monkeypatch)
    call_roll, broken = loop.call_roll, [HorovodInternalError("rank 1 is gone")]
    monkeypatch.setattr(loop, "call_roll", lambda: call_roll() if not broken else breaks(broken.pop()))
    monkeypatch.setattr(_ffi, "must_sync_state", lambda: elastic.told == 0)
    found, begins = folds(torch_state, 3)
    assert found == expected(3) and begins == {2: 2}


def test_state_that_goes_through_several_runs(elastic, monkeypatch):
    def script(dies):
        state = torch_state()
        seen = []

        @hvd.elastic.run
        def pretrain(state):
            while state.step < STEPS:
                add(state, 1)
                state.step += 1
                state.commit()
            return state

        @hvd.elastic.run
        def finetune(state):
            while state.step < 2 * STEPS:
                add(state, 10)
                state.step += 1
                state.commit()
                if dies:
                    raise Killed
            return state.model

        assert pretrain(state) is state
        seen.append(total(state))
        assert finetune(state) is state.model
        return [*seen, total(state)]

    with pytest.raises(Killed):
        script(True)
    new_process(monkeypatch)
    assert script(False) == [STEPS, 11 * STEPS]


def test_commits_of_each_state_outlive_the_process_while_others_exist(elastic, monkeypatch):
    """The store once kept those of the first state only."""
    kept_alive = []

    def make():
        kept_alive.append(torch_state())
        return kept_alive[-1]

    with pytest.raises(Killed):
        folds(make, 2, dies=1)
    new_process(monkeypatch)
    found, begins = folds(torch_state, 2)
    assert found == expected(2) and begins == {1: 2}


def test_start_of_a_later_run_is_a_commit_of_its_own(elastic):
    """A number never stands for two contents."""
    numbers = []

    @hvd.elastic.run
    def train(state):
        numbers.append((commits.newest(), elastic.newest and elastic.newest[0]))
        state.commit()

    for _ in range(3):
        train(torch_state())
    assert numbers == [(0, None), (2, 2), (4, 4)]


def test_run_that_raised_raises_again(elastic, monkeypatch):
    def script(dies):
        @hvd.elastic.run
        def train(state, bad):
            if bad:
                raise KeyError("no such fold")
            state.step += 1
            state.commit()
            if dies:
                raise Killed
            return state.step

        with pytest.raises(KeyError, match="no such fold"):
            train(torch_state(), True)
        return train(torch_state(), False)

    with pytest.raises(Killed):
        script(True)
    new_process(monkeypatch)
    assert script(False) == 2


def script_of(first, second="train", result=None, make=torch_state):
    """Returns a script of two runs; the second one dies. Each function has the given name."""

    def body(state):
        return result() if result else state.step

    def dying(state):
        state.commit()
        raise Killed

    body.__qualname__, dying.__qualname__ = first, second
    hvd.elastic.run(body)(make())
    hvd.elastic.run(dying)(torch_state())


class Custom(hvd.elastic.State):
    """A user's own state, not derived from a class of Horovod."""

    step = 0

    def save(self):
        pass

    restore = sync = save


@pytest.mark.parametrize(
    "script, again, error",
    [
        (
            dict(first="train", result=lambda: (n for n in range(3))),
            dict(first="train"),
            (
                r"run 1 of the script \(train\) ended before this process began, and what it returned can't be had: "
                r"generator can't be pickled \(.+\)$"
            ),
        ),
        (
            dict(first="train", make=Custom),
            dict(first="train", make=Custom),
            r"how it left its state can't be had: use a state derived from hvd.elastic.ObjectState, not Custom$",
        ),
        (
            dict(first="pretrain"),
            dict(first="finetune"),
            (
                r"run 1 of the script \(finetune\) was another one in this job, pretrain: each process has to begin the same "
                r"runs, with the same states, in the same order; a new training needs an empty checkpoint_dir$"
            ),
        ),
        (
            dict(first="train"),
            dict(first="train", make=object_state),
            r"what it left can't be used: only one of the two has total$",
        ),
    ],
)
def test_what_can_not_be_passed_is_said_in_a_line(elastic, monkeypatch, script, again, error):
    with pytest.raises(Killed):
        script_of(**script)
    new_process(monkeypatch)
    with pytest.raises(CanNotPass, match=error) as raised:
        script_of(**again)
    assert "\n" not in str(raised.value)


def test_run_within_a_run_belongs_to_it(elastic, monkeypatch):
    @hvd.elastic.run
    def inner(state):
        state.step += 1
        state.commit()
        return state.step

    @hvd.elastic.run
    def outer(state):
        return inner(state) + inner(state)

    assert outer(torch_state()) == 3 and runs.number == 1


# Checkpoints, of jobs that end and are started again.


@pytest.fixture
def jobs(monkeypatch):
    """Returns a function that begins the next job."""

    def begin():
        runs.forget()
        monkeypatch.setattr(commits, "_newest", 0)

    begin()
    yield begin
    begin()


@pytest.mark.parametrize("dies", [0, 1, 2])
def test_job_started_again_continues_in_its_run(jobs, tmp_path, dies):
    with pytest.raises(Killed):
        folds(torch_state, 3, dies, checkpoint_dir=str(tmp_path))
    jobs()
    found, begins = folds(torch_state, 3, checkpoint_dir=str(tmp_path))
    assert found == expected(3)
    assert begins == {fold: 2 if fold == dies else 0 for fold in range(dies, 3)}


def test_job_started_again_with_a_folder_for_each_run(jobs, tmp_path):
    def script(dies):
        folders = iter(["a", "b"])
        return folds(lambda: torch_state(checkpoint_dir=str(tmp_path / next(folders))), 2, dies)

    with pytest.raises(Killed):
        script(1)
    jobs()
    found, begins = script(None)
    assert found == expected(2)
    assert begins == {0: STEPS, 1: 2}  # the first one's function had nothing more to do


def test_last_run_of_a_finished_job_may_continue(jobs, tmp_path):
    """It has more steps than before, as when a training is extended."""
    folds(torch_state, 2, checkpoint_dir=str(tmp_path))
    jobs()
    found, begins = folds(torch_state, 2, steps=STEPS + 2, checkpoint_dir=str(tmp_path))
    assert begins == {1: STEPS}
    assert found[0] == expected(2)[0] and found[1][1] == (2.0 * (STEPS + 2), STEPS + 2)


def test_damaged_checkpoint_of_a_later_run_leaves_the_one_before(jobs, tmp_path):
    with pytest.raises(Killed):
        folds(torch_state, 2, 1, checkpoint_dir=str(tmp_path))
    newest = max(tmp_path.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    newest.write_bytes(newest.read_bytes()[:-8])
    jobs()
    found, begins = folds(torch_state, 2, checkpoint_dir=str(tmp_path))
    assert found == expected(2) and begins == {1: 1}
