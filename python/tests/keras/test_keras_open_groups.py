"""Commits within a group of batches whose gradients are accumulated."""

import warnings

import pytest

from horovod.elastic import open_groups, tensor_state
from kerases import BATCH, JIT, KINDS, batches, fit, hvd, keras, model_of, optimizers

TEXT = "a commit came within an accumulation group"
PASSES = 2


@pytest.fixture(autouse=True)
def elastic(monkeypatch):
    monkeypatch.setattr(tensor_state, "is_elastic", lambda: True)
    monkeypatch.setattr(open_groups, "_has_warned", False)


def said_in_fit(kind, batches_per_commit, steps=4, made=lambda optimizer: optimizer, **options):
    """The lines of the warning in an epoch, after which another commit comes."""
    model = model_of()
    optimizer = hvd.DistributedOptimizer(optimizers(kind).SGD(0.01), **options)
    model.compile(made(optimizer), "mse", jit_compile=JIT)
    state = hvd.elastic.KerasState(model)
    commits = hvd.elastic.CommitStateCallback(state, batches_per_commit=batches_per_commit)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        state.commit()
        fit(model, batches(steps)[1], BATCH, epochs=1, callbacks=[commits])
        state.commit()
    return [str(each.message) for each in caught if TEXT in str(each.message)]


def assert_told(said):
    assert len(said) == (hvd.rank() == 0)
    assert all(f"(backward_passes_per_step={PASSES})" in line and "\n" not in line for line in said)


@pytest.mark.parametrize("kind", KINDS)
def test_commits_within_groups_are_reported_once(kind):
    assert_told(said_in_fit(kind, 3, backward_passes_per_step=PASSES))


@pytest.mark.parametrize("kind", KINDS)
def test_an_epoch_that_ends_within_a_group_is_reported(kind):
    assert_told(said_in_fit(kind, 2, steps=5, backward_passes_per_step=PASSES))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("passes", [1, PASSES])
def test_commits_at_the_ends_of_groups_are_in_order(kind, passes):
    assert said_in_fit(kind, passes, backward_passes_per_step=passes) == []


@pytest.mark.only("keras3")
def test_a_loss_scale_is_looked_through():
    made = keras.optimizers.LossScaleOptimizer
    assert_told(said_in_fit("new", 3, made=made, backward_passes_per_step=PASSES))
