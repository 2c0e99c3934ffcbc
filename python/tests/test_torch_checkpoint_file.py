"""The file of a checkpoint: what is written is read again, and damage is noticed. In one process."""

import os

import pytest
import torch

from checkpointed_training import DATA
from elastic_training import assert_equal
from horovod.elastic import checkpoint_file
from horovod.elastic.checkpoint_file import Origin
from horovod.torch._loading import TREES as TORCH

VALUES = {"epoch": 3, "name": "x", "rate": 0.1, "odd": {1: (None, [float("inf")])}, "set": {1, 2}}
TREES = {
    "model": {
        "weight": torch.arange(6.0).reshape(2, 3),
        "half": torch.ones(3, dtype=torch.bfloat16),
        "none": torch.empty(0, 4),
        "scalar": torch.tensor(7),
        "mask": torch.tensor([True, False]),
        "turned": torch.arange(6).reshape(2, 3).t(),
    }
}


def write(path, commit=5):
    with open(path, "wb") as file:
        checkpoint_file.write(TORCH, file, Origin(commit, 3, "job", 2), VALUES, TREES)


def test_file_gives_back_what_was_written(tmp_path):
    path = str(tmp_path / "a")
    write(path)
    found = checkpoint_file.read(TORCH, path)
    assert (found.origin, found.values) == (Origin(5, 3, "job", 2), VALUES)
    assert checkpoint_file.read_origin(path) == found.origin
    assert_equal(found.trees, TREES)
    for name, tensor in TREES["model"].items():
        assert found.trees["model"][name].dtype == tensor.dtype


def test_each_damage_is_noticed(tmp_path):
    path = tmp_path / "a"
    write(str(path))
    whole = path.read_bytes()
    used = [i for i in range(len(whole)) if whole[i] != 0]  # the rest may be padding
    damaged = [whole[:size] for size in (0, 10, 24, 100, len(whole) - 1)] + [whole + b"x"]
    for position in used[::7] + used[-3:]:
        bad = bytearray(whole)
        bad[position] ^= 1
        damaged.append(bytes(bad))
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(checkpoint_file.Damaged):
            checkpoint_file.read(TORCH, str(path))


def test_non_file_is_not_waited_for(tmp_path):
    path = str(tmp_path / "a")
    os.mkfifo(path)
    for read in (lambda: checkpoint_file.read(TORCH, path), lambda: checkpoint_file.read_origin(path)):
        with pytest.raises(checkpoint_file.Damaged, match="not a regular file"):
            read()


# What the files in data/ hold. They are never written again: what an older version has written is
# read, or refused in one line.
KEPT_VALUES = {
    "epoch": 3,
    "name": "gr\xf6\xdfer",
    "rate": 0.1,
    "nothing": None,
    "flag": True,
    "odd": {1: (None, [float("inf")])},
    "history": list(range(5)),
    "set": {1, 2},
}
KEPT_TREES = {
    "model": {name: TREES["model"][name] for name in ("weight", "half", "none", "scalar", "mask")},
    "optimizer": {
        "state": {0: {"step": torch.tensor(2.0)}},
        "param_groups": [{"lr": 0.5, "params": [0]}],
    },
    "sampler": {"epoch": 3, "processed_num": 40},
}
KEPT_NUMBERS = {"counts": list(range(-1000, 1000)), "rates": tuple(n / 7 for n in range(1000))}


def test_files_of_older_versions_are_read():
    first = checkpoint_file.read(TORCH, str(DATA / "checkpoint-format-1.hvd"))
    assert (first.origin, first.values) == (Origin(5), KEPT_VALUES)
    assert_equal(first.trees, KEPT_TREES)
    second = checkpoint_file.read(TORCH, str(DATA / "checkpoint-format-2.hvd"))
    assert second.origin == Origin(9, 4, "the job", 3)
    assert second.values == {**KEPT_VALUES, **KEPT_NUMBERS}
    assert_equal(second.trees, KEPT_TREES)


def test_lists_of_numbers_do_not_count_for_the_header(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_file, "_MAX_HEADER", 20000)
    path = str(tmp_path / "a")
    values = {
        "ints": list(range(10**6)),
        "floats": tuple(float(n) for n in range(10**6)),
        "limits": [-(2**63), 2**63 - 1] * 1000,
        "odd": [float("nan"), float("-inf"), -0.0] * 1000,
    }
    with open(path, "wb") as file:
        checkpoint_file.write(TORCH, file, Origin(1), values, {})
    found = checkpoint_file.read(TORCH, path).values
    assert repr(found) == repr(values)


def test_lists_that_only_look_like_numbers_stay_what_they_are(tmp_path):
    path = str(tmp_path / "a")
    values = {
        "flags": [True, False] * 600,
        "mixed": [1, 2.0] * 600,
        "large": [2**63, 1] * 600,
        "none": [None, 1] * 600,
        "short": [1, 2],
    }
    with open(path, "wb") as file:
        checkpoint_file.write(TORCH, file, Origin(1), values, {})
    assert repr(checkpoint_file.read(TORCH, path).values) == repr(values)
