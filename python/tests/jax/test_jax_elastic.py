"""The elastic state of JAX: pytrees that are saved, restored and synchronized, and the loop's errors."""

import collections

import jax
import jax.numpy as jnp
import numpy
import pytest

import horovod.jax as hvd
from agents_store import enter, new_process
from horovod.common import basics, exceptions
from ranks import JitError, check, of_rank

Pair = collections.namedtuple("Pair", "first second")


def state_of(rank, **kwargs):
    tree = {
        "w": jnp.asarray(of_rank(rank)),
        "pair": Pair(jnp.asarray(of_rank(rank, (2,), "bfloat16")), [jnp.int32(rank), "text", rank]),
        "key": jax.random.key(rank),
        "old_key": jax.random.PRNGKey(rank),
        "numpy": of_rank(rank, (2,), "float64"),
    }
    return hvd.elastic.JaxState(tree=tree, weights=jnp.full(3, float(rank)), names=[rank], step=rank, **kwargs)


def is_of(state, rank):
    tree = state.tree
    check(tree["w"], of_rank(rank))
    check(tree["pair"].first, of_rank(rank, (2,), "bfloat16"))
    check(tree["pair"].second[0], numpy.int32(rank))
    assert type(tree["pair"]) is Pair and tree["pair"].second[1:] == ["text", rank]
    assert tree["key"].dtype == jax.random.key(0).dtype
    assert jax.random.bits(tree["key"]) == jax.random.bits(jax.random.key(rank))
    check(tree["old_key"], numpy.asarray(jax.random.PRNGKey(rank)))
    assert type(tree["numpy"]) is numpy.ndarray and numpy.array_equal(tree["numpy"], of_rank(rank, (2,), "float64"))
    check(state.weights, numpy.full(3, rank, "float32"))
    assert (state.names, state.step) == ([rank], rank)


def change(state, rank):
    other = state_of(rank)
    state.tree, state.weights, state.names, state.step = other.tree, other.weights, other.names, other.step


def test_state_is_what_was_saved_after_restore(tmp_path):
    state = state_of(1, checkpoint_dir=str(tmp_path))
    is_of(state, 1)
    change(state, 2)
    is_of(state, 2)
    state.restore()
    is_of(state, 1)
    change(state, 3)
    state.save()
    change(state, 4)
    state.restore()
    is_of(state, 3)


def test_a_save_is_a_copy():
    kept = numpy.arange(3.0)
    state = hvd.elastic.JaxState(tree={"numpy": kept, "w": jnp.ones(3)})
    step = jax.jit(lambda w: w * 2, donate_argnums=0)
    kept += 1
    state.tree = {"numpy": kept, "w": step(state.tree["w"])}
    state.restore()
    assert state.tree["numpy"].tolist() == [0, 1, 2]
    first = state.tree["w"]
    state.tree = {"numpy": state.tree["numpy"], "w": step(first)}
    for _ in range(2):
        state.restore()
        check(state.tree["w"], numpy.ones(3, "float32"))
        state.save()


def test_what_is_assigned_has_the_same_structure_shapes_and_types():
    state = hvd.elastic.JaxState(tree={"a": jnp.zeros(3), "n": 1}, w=jnp.zeros(2))
    for tree, text in (
        ({"a": jnp.zeros(3)}, r"^JaxState\.tree: it has to stay .* the same structure: \['n'\] is missing"),
        ({"a": jnp.zeros(3), "n": 1, "b": 2}, r"the same structure: \['b'\] is new"),
        (jnp.zeros(3), r"the same structure: \['a'\] is missing"),
        ({"a": jnp.zeros(4), "n": 1}, r"\['a'\] was float32\[3\], is float32\[4\]"),
        ({"a": jnp.zeros(3, "int32"), "n": 1}, r"\['a'\] was float32\[3\], is int32\[3\]"),
        ({"a": jnp.zeros(3), "n": jnp.int32(1)}, r"\['n'\] was no array, is int32\[\]"),
    ):
        with pytest.raises(ValueError, match=text):
            state.tree = tree
    with pytest.raises(ValueError, match=r"^JaxState\.w: .*structure: a single leaf is missing"):
        state.w = None
    state.tree = {"a": numpy.ones(3, "float32"), "n": 2}
    assert state.tree["n"] == 2
    with pytest.raises(AttributeError, match="JaxState has no attribute 'nonsense'"):
        print(state.nonsense)


def test_values_without_names_are_refused():
    with pytest.raises(
        TypeError, match=r"checkpoint_dir must be the path of a folder or a URL, not a dict; values .* by their names"
    ):
        hvd.elastic.JaxState({"a": jnp.zeros(3)})


def test_state_is_rank_0s_after_sync():
    state = state_of(hvd.rank())
    mine = state.tree["numpy"]
    state.sync()
    is_of(state, 0)
    assert numpy.array_equal(mine, of_rank(hvd.rank(), (2,), "float64"))  # it may be an array's memory
    change(state, 7)
    state.restore()
    is_of(state, 0)


def test_next_process_continues_from_the_commit(store, monkeypatch, capsys):
    if hvd.size() > 1:
        pytest.skip("the fixture's store is of one process")
    state = state_of(1)
    change(state, 5)
    state.commit()
    assert store.newest[0] == 1
    change(state, 6)
    state.restore()
    is_of(state, 5)
    new_process(monkeypatch)
    fresh = state_of(0)
    enter(fresh)
    is_of(fresh, 5)
    assert capsys.readouterr().err == "Horovod: going on from commit 1, kept in memory\n"


def test_broadcast_parameters():
    root = hvd.size() - 1
    state = state_of(hvd.rank())
    sent = hvd.broadcast_parameters({"tree": state.tree, "weights": state.weights}, root)
    other = state_of(root)
    other.tree, other.weights = sent["tree"], sent["weights"]
    is_of(other, root)
    is_of(state, hvd.rank())
    with pytest.raises(ValueError, match=r"root rank \d+ is not in the process set"):
        hvd.broadcast_parameters(jnp.ones(1), hvd.size())


@pytest.mark.several_ranks
def test_parameters_of_another_structure():
    tree = [jnp.ones(2)] * (1 + (hvd.rank() == 0))
    if hvd.rank() == 0:
        hvd.broadcast_parameters(tree)
    else:
        with pytest.raises(ValueError, match="a pytree of another structure"):
            hvd.broadcast_parameters(tree)


ABORTED = "Rank 1 left"


def failing(code):
    """A program that fails as collectives do."""
    return JitError(f"ABORTED: HorovodInternalError: {ABORTED} (code {code})\nmore of JAX's")


def test_a_failure_within_jit_is_a_horovod_internal_error():
    error = exceptions.translated(failing(10))
    assert type(error) is hvd.HorovodInternalError and error.caused_by_peer and str(error).endswith(ABORTED)
    assert not exceptions.translated(failing(13)).caused_by_peer
    assert type(exceptions.translated(failing(100))) is exceptions.WorkerReleased
    assert basics._caused_by_peer(failing(10)) and not basics._caused_by_peer(failing(13))


def test_run_continues_after_a_failure_within_jit():
    state = hvd.elastic.JaxState(w=jnp.zeros(2), step=0)
    seen = []

    @hvd.elastic.run
    def train(state):
        seen.append((state.step, float(state.w[0])))
        while state.step < 4:
            state.w = jax.jit(lambda w: w + hvd.allreduce(jnp.ones(2)))(state.w)
            state.step += 1
            if state.step == 3 and len(seen) == 1:
                raise failing(10)
            state.commit()

    train(state)
    assert seen == [(0, 0.0), (2, 2.0)]
    check(state.w, numpy.full(2, 4, "float32"))


def test_run_does_not_continue_after_a_mismatch_within_jit():
    calls = []

    @hvd.elastic.run
    def train(state):
        calls.append(1)
        raise JitError("INVALID_ARGUMENT: HorovodRequestError: Mismatched (code 3)")

    with pytest.raises(hvd.HorovodRequestError, match="Mismatched"):
        train(hvd.elastic.JaxState(w=jnp.zeros(2)))
    assert calls == [1]


def test_samplers_are_in_states():
    state = hvd.elastic.JaxState(w=jnp.zeros(2), sampler=hvd.elastic.ElasticSampler(range(100)))
    state.sampler.record_batch(0, 5)
    state.save()
    state.sampler.record_batch(1, 5)
    state.restore()
    assert state.sampler.processed_num == 5 * hvd.size()


def test_pieces_that_commits_compare():
    state = state_of(1)
    own = {name: handler.own_tensors() for name, handler in state._by_state_dict().items()}
    found = {piece.name: numpy.shape(array) for piece, array in state._replicated(own)}
    assert found["weights"] == (3,) and found["tree['w']"] == of_rank(1).shape and "tree['pair'].second[1]" not in found
