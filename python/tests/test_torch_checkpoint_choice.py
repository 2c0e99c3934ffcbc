"""Which checkpoints are kept, and how they are read without a job. In one process."""

import subprocess
import sys
import types
import warnings

import pytest
import torch

import horovod.torch as hvd
from agents_store import new_process
from horovod import _ffi
from horovod.elastic import checkpoints, tensor_state
from horovod.elastic.checkpoint_file import Damaged

load = hvd.elastic.load_checkpoint


def state_in(folder, **options):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    return hvd.elastic.TorchState(
        model, optimizer, nets=[torch.nn.Linear(1, 1)], step=0, loss=None, checkpoint_dir=str(folder), **options
    )


def commit(state, *losses):
    for state.loss in losses:
        state.step += 1
        state.model(torch.ones(1, 2)).sum().backward()
        state.optimizer.step()
        state.commit()
        state._checkpoints.wait()


def name_of(number):
    """The file of a commit, in the world of this process, which other tests may have left and entered again."""
    return f"checkpoint-{number}-w{max(1, _ffi.query('epoch'))}.hvd"


def files(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


@pytest.fixture(autouse=True)
def first_process(monkeypatch):
    new_process(monkeypatch)


@pytest.mark.parametrize("keep", [1, 4])
def test_so_many_are_kept(tmp_path, keep):
    commit(state_in(tmp_path, checkpoint_keep=keep), *range(6))
    assert files(tmp_path) == [name_of(n) for n in range(7 - keep, 7)]


@pytest.mark.parametrize(
    "best, losses, step", [("min loss", [5, 2, 4, 2.0, 3], 2), ("max loss", [None, 2, float("nan"), 9, 3], 4)]
)
def test_best_one_is_kept(tmp_path, monkeypatch, best, losses, step):
    commit(state_in(tmp_path, checkpoint_best=best), *losses)
    assert load(tmp_path / "best.hvd")["step"] == step
    assert files(tmp_path) == ["best.hvd", name_of(4), name_of(5)]
    # The next job compares with it.
    new_process(monkeypatch)
    state = state_in(tmp_path, checkpoint_best=best)
    state.sync()
    commit(state, 4)
    assert load(tmp_path / "best.hvd")["step"] == step
    commit(state, -1 if best.startswith("min") else 99)
    assert load(tmp_path / "best.hvd")["step"] == 7


def test_best_one_is_due(tmp_path):
    """It lies between two that are due by their numbers, and another one is being written."""
    state = state_in(tmp_path, checkpoint_every=100, checkpoint_best="min loss")
    for state.step, state.loss in enumerate([5, 4, 4.5]):
        state.commit()
    state._checkpoints.wait()
    assert load(tmp_path / "best.hvd")["loss"] == 4
    assert files(tmp_path) == ["best.hvd", name_of(1), name_of(2)]


def test_tensor_may_be_the_measure(tmp_path):
    commit(state_in(tmp_path, checkpoint_best="max loss"), torch.tensor(1.0), torch.tensor(3.0), torch.tensor(2.0))
    assert load(tmp_path / "best.hvd")["loss"] == 3.0


def test_each_run_has_its_best_one(tmp_path):
    @hvd.elastic.run
    def train(state, *losses):
        commit(state, *losses)

    train(state_in(tmp_path, checkpoint_best="min loss"), 1, 2)
    train(state_in(tmp_path, checkpoint_best="min loss"), 9, 8)
    assert load(tmp_path / "best.hvd")["loss"] == 1 and load(tmp_path / "best-run2.hvd")["loss"] == 8


def test_best_one_of_another_rank_0_is_not_replaced_by_a_worse_one(tmp_path, monkeypatch):
    """Rank 0 moves to another process, and back."""
    before = state_in(tmp_path, checkpoint_best="max loss")
    commit(before, 0.90)
    monkeypatch.setattr(tensor_state, "rank", lambda: 1)
    commit(before, 0.95)
    monkeypatch.undo()
    between = state_in(tmp_path, checkpoint_best="max loss")
    commit(between, 0.95)
    commit(before, 0.92)
    assert load(tmp_path / "best.hvd")["loss"] == 0.95
    commit(before, 0.97)
    assert load(tmp_path / "best.hvd")["loss"] == 0.97


def test_file_system_without_hard_links(tmp_path, monkeypatch):
    def no_links(*_):
        raise OSError("not supported")

    monkeypatch.setattr("os.link", no_links)
    commit(state_in(tmp_path, checkpoint_best="min loss"), 1, 2, 3)
    assert load(tmp_path / "best.hvd")["loss"] == 1


def test_best_one_that_can_not_be_replaced_harms_no_other(tmp_path, capfd):
    in_its_place = tmp_path / "best.hvd"
    in_its_place.mkdir()
    state = state_in(tmp_path, checkpoint_best="min loss", checkpoint_every=100)
    commit(state, 4, 3, 2)
    assert files(tmp_path) == ["best.hvd", name_of(2), name_of(3)]
    told = [line for line in capfd.readouterr().err.splitlines() if "can't be" in line]
    assert told == [f"Horovod: {in_its_place} can't be replaced: Is a directory"]
    in_its_place.rmdir()
    commit(state, 2.5)  # the best one that is kept from now on
    assert load(in_its_place)["loss"] == 2.5


@pytest.mark.parametrize(
    "options, error",
    [
        (dict(checkpoint_keep=0), "checkpoint_keep must be a positive number, not 0"),
        (
            dict(checkpoint_best="loss"),
            "checkpoint_best must be 'min NAME' or 'max NAME' of a value of the state, not 'loss'",
        ),
        (dict(checkpoint_best="min error"), "checkpoint_best='min error': the state has no value error"),
    ],
)
def test_wrong_options(tmp_path, options, error):
    with pytest.raises(ValueError, match=f"^{error}$"):
        state_in(tmp_path, **options)
    with pytest.raises(ValueError, match=f"^{error}$"):
        hvd.elastic.TorchState(loss=1.0, **options)


@pytest.mark.parametrize(
    "name, option",
    [
        ("checkpont_dir", "checkpoint_dir"),
        ("checkpoints_dir", "checkpoint_dir"),
        ("chekcpoint_every", "checkpoint_every"),
        ("checkpoint_keeps", "checkpoint_keep"),
        ("chekpoint_best", "checkpoint_best"),
    ],
)
def test_a_misspelt_option_warns(name, option):
    with pytest.warns(UserWarning, match=f"TorchState has no option {name}, .*; did you mean {option}\\?") as caught:
        hvd.elastic.TorchState(**{name: "x"})
    assert [warning.filename for warning in caught] == [__file__]


def test_options_of_a_state_without_checkpoints_warn():
    with pytest.warns(UserWarning, match="^ObjectState writes no checkpoints: checkpoint_dir is a plain value of it$"):
        hvd.elastic.ObjectState(checkpoint_dir="x")


def test_other_names_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hvd.elastic.TorchState(epoch=0, check=1, checkpoint=2, checkpoint_step=3, checkpoint_last=4, best=5)


# Reading.


def test_what_was_saved_can_be_read(tmp_path):
    state = state_in(tmp_path)
    commit(state, 1, 2)
    for path in (tmp_path, tmp_path / name_of(2), f"file://{tmp_path}"):
        found = load(path)
        assert sorted(found) == ["loss", "model", "nets", "optimizer", "step"] and found["step"] == 2
        assert torch.equal(found["model"]["weight"], state.model.weight)
        torch.nn.Linear(2, 1).load_state_dict(found["model"])
        torch.nn.Linear(1, 1).load_state_dict(found["nets"][0])
        torch.optim.SGD(torch.nn.Linear(2, 1).parameters(), 0.1, momentum=0.9).load_state_dict(found["optimizer"])
    assert load(tmp_path / name_of(1))["step"] == 1
    assert files(tmp_path) == [name_of(1), name_of(2)]


def test_value_of_a_class_that_is_gone(tmp_path, monkeypatch, capfd):
    gone = types.ModuleType("gone_module")
    gone.Thing = type("Thing", (), {"__module__": "gone_module"})
    with monkeypatch.context() as there:
        there.setitem(sys.modules, "gone_module", gone)
        commit(state_in(tmp_path, checkpoint_best="min loss", thing=gone.Thing()), 1)
    reason = "has a value that can't be unpickled here: ModuleNotFoundError: No module named 'gone_module'"
    with pytest.raises(ValueError, match=f"^checkpoint {tmp_path / name_of(1)} {reason}$"):
        load(tmp_path)
    new_process(monkeypatch)
    state = state_in(tmp_path, checkpoint_best="min loss")
    with pytest.raises(ValueError, match=reason):
        state.sync()
    (tmp_path / name_of(1)).unlink()
    commit(state, 2)  # the best one so far can't be read
    assert load(tmp_path / "best.hvd")["loss"] == 2 and f"best.hvd {reason}" in capfd.readouterr().err


def test_damaged_or_missing(tmp_path, capsys):
    with pytest.raises(FileNotFoundError, match="has no checkpoint"):
        load(tmp_path)
    commit(state_in(tmp_path), 1, 2)
    newest = tmp_path / name_of(2)
    newest.write_bytes(newest.read_bytes()[:-5])
    assert load(tmp_path)["step"] == 1
    assert f"checkpoint is skipped: {newest}: " in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"checkpoint-2-w\d+\.hvd: .* bytes are there"):
        load(newest)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / name_of(9))
    other = tmp_path / "model.hvd"
    torch.save({}, other)
    with pytest.raises(ValueError, match="it is not a checkpoint of Horovod"):
        load(other)
    assert issubclass(Damaged, Exception) and checkpoints.Damaged is Damaged


def export(*arguments):
    command = [sys.executable, "-m", "horovod.elastic.export", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_export_to_a_file_of_torch(tmp_path):
    state = state_in(tmp_path / "in", weights=torch.zeros(20, 10))
    commit(state, 1, 2)
    result = export(tmp_path / "in", tmp_path / "out.pt")
    assert result.returncode == 0, result.stderr
    assert f"{name_of(2)}: commit 2, run 1\n" in result.stdout and "  step: 2\n" in result.stdout
    assert "  weights: Tensor of float32, shape [20, 10]\n" in result.stdout
    found = torch.load(tmp_path / "out.pt")
    assert torch.equal(found["model"]["weight"], state.model.weight) and found["step"] == 2
    assert export(tmp_path / "in" / name_of(1)).stdout.count("\n") == 7


def test_export_says_in_a_line_what_is_wrong(tmp_path):
    result = export(tmp_path, tmp_path / "out.pt")
    assert (result.returncode, result.stdout) == (2, "") and not (tmp_path / "out.pt").exists()
    assert result.stderr == f"horovod.elastic.export: {tmp_path} has no checkpoint\n"
    assert export().returncode == 2
    (tmp_path / "best.pt").touch()
    other = export(tmp_path / "best.pt")
    assert (other.returncode, other.stdout) == (1, "")
    assert other.stderr == f"horovod.elastic.export: {tmp_path}/best.pt is no checkpoint: their names end with .hvd\n"
    missing = tmp_path / "nope"
    for path in (missing, missing / "checkpoint-1-w1.hvd"):
        result = export(path)
        assert (result.returncode, result.stdout) == (2, "") and len(result.stderr.splitlines()) == 1
        assert result.stderr.startswith(f"horovod.elastic.export: {path if path == missing else missing}")
        assert "Errno" not in result.stderr
