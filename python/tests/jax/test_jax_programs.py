"""Collectives in jitted programs: their order, names, errors, and their behaviour in another world."""

import re

import jax
import jax.numpy as jnp
import numpy
import pytest

import horovod.jax as hvd
from horovod.common import exceptions
from ranks import WAYS, JitError, check, mine, of_all, of_rank, x64


def calls_of(function, *args):
    """The lines of the custom calls in the program of a function."""
    text = function.lower(*args).as_text()
    return [line for line in text.splitlines() if "@hvd_jax_collective" in line]


def names_of(function, *args):
    return [re.search('name = "(.*?)"', line)[1] for line in calls_of(function, *args)]


def test_calls_are_named_after_the_program_and_their_place_in_it():
    def step(x):
        return hvd.allreduce(x), hvd.allreduce({"x": x}), hvd.broadcast(x, 0, "own"), jax.vmap(hvd.allgather)(x)

    names = ["allreduce.jit_step.0", "grouped_allreduce.jit_step.1", "broadcast.own", "allgather.jit_step.3"]
    assert names_of(jax.jit(step), mine()) == names
    assert names_of(jax.jit(step), mine((5, 5))) == names


def test_each_call_waits_for_the_one_before():
    calls = calls_of(jax.jit(lambda x: [hvd.allreduce(x + i) for i in range(4)]), mine())
    given = [re.match(r"\s*(%\w+)", line)[1] for line in calls]
    taken = [re.search(r"@hvd_jax_collective\((.*?)\)", line)[1].split(", ")[1:] for line in calls]
    assert taken == [[], *([f"{name}#1"] for name in given[:-1])]


def test_many_large_independent_arrays_that_become_ready_in_another_order_on_each_rank():
    """More than XLA has threads, which would all wait, each for what another rank has not come to."""
    count, shape = 16, (500, 700)

    @jax.jit
    def program(x, work):
        ready = [jax.lax.fori_loop(0, work[i], lambda _, y: y + 1, x) for i in range(count)]
        return [hvd.allreduce(y, op=hvd.Sum) for y in ready]

    works = numpy.random.RandomState(0).randint(0, 200, (hvd.size(), count))
    for _ in range(3):
        results = program(mine(shape), jnp.asarray(works[hvd.rank()]))
    for result, work in zip(results, works.sum(0)):
        check(result, of_all(shape).sum(0) + numpy.float32(work))


def test_programs_under_way_do_not_meet_others():
    first, second = jax.jit(lambda x: hvd.allreduce(x + 1)), jax.jit(lambda x: hvd.allreduce(x - 1))
    shape = (300, 300)
    for _ in range(5):
        results = first(mine(shape)), second(mine(shape)), hvd.allreduce(mine(shape))
    for result, more in zip(results, (1, -1, 0)):
        numpy.testing.assert_allclose(result, of_all(shape).mean(0) + more, rtol=1e-6)


def test_a_world_is_left_when_programs_under_way_have_ended():
    program, shape = jax.jit(lambda x: jnp.sin(hvd.allreduce(x + 1))), (600, 600)
    results = [program(mine(shape)) for _ in range(10)]
    hvd.shutdown()
    hvd.init()
    for result in results:
        numpy.testing.assert_allclose(result, numpy.sin(of_all(shape).mean(0) + 1), rtol=1e-5)


def test_what_one_rank_does_not_use_is_run():
    rank = hvd.rank()
    check(jax.jit(lambda x: hvd.allreduce(x, op=hvd.Sum) if rank == 0 else (hvd.allreduce(x, op=hvd.Sum), x)[1])(mine()),
          of_all().sum(0) if rank == 0 else of_rank(rank))  # fmt: skip


def test_one_rank_traces_again():
    function = jax.jit(lambda x: hvd.allreduce(x) + hvd.broadcast(x, 0))
    for number in range(4):
        if hvd.rank() == number % hvd.size():
            jax.clear_caches()
        check(function(mine()), of_all().mean(0, dtype="float32") + of_rank(0))


def test_one_name_is_one_operation_within_jit_and_outside():
    way = WAYS["jit" if hvd.rank() % 2 else "eager"]
    check(way(lambda x: hvd.allreduce(x, "same", hvd.Sum))(mine()), of_all().sum(0))
    result = way(lambda tree: hvd.allreduce(tree, "same", hvd.Sum))([mine(), mine((2,))])
    check(result[1], of_all((2,)).sum(0))


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_types_of_64_bits(way, dtype):
    with x64():
        check(way(lambda x: hvd.allreduce(x, op=hvd.Sum))(mine((4, 3), dtype)), of_all((4, 3), dtype).sum(0))


def test_donated_arrays():
    step = jax.jit(lambda x: x - hvd.allreduce(x), donate_argnums=0)
    check(step(mine()), of_rank(hvd.rank()) - of_all().mean(0, dtype="float32"))


def test_compiled_ahead_of_time():
    compiled = jax.jit(lambda x: hvd.allreduce(x, op=hvd.Sum)).lower(mine()).compile()
    check(compiled(mine()), of_all().sum(0))


def test_numbers_that_are_traced_are_refused():
    for operation in (
        lambda x, number: hvd.allreduce(x, prescale_factor=number),
        lambda x, number: hvd.reducescatter(x, postscale_factor=number),
        lambda x, number: hvd.broadcast(x, number),
    ):
        with pytest.raises(hvd.HorovodRequestError, match="must be known when the function is traced") as caught:
            jax.jit(operation)(mine(), 0)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("operation", [hvd.barrier, hvd.join, lambda: hvd.broadcast_object(1), lambda: hvd.allgather_object(1),
                                       lambda: hvd.broadcast_parameters(jnp.ones(1))])  # fmt: skip
def test_what_can_not_be_jitted_is_refused(operation):
    with pytest.raises(hvd.HorovodRequestError, match="can't be jitted: call it outside of jit"):
        jax.jit(operation)()


def test_alltoall_with_splits_can_not_be_jitted():
    ones = [1] * hvd.size()
    for function in (lambda x, s: hvd.alltoall(x, ones), hvd.alltoall):
        with pytest.raises(hvd.HorovodRequestError, match="alltoall with splits can't be jitted"):
            jax.jit(function)(jnp.ones(hvd.size()), jnp.array(ones))


def error_of(function, *args):
    with pytest.raises((JitError, ValueError)) as caught:
        jax.block_until_ready(function(*args))
    return caught.value


@pytest.mark.several_ranks
def test_a_mismatch_is_reported_and_the_world_continues():
    error = error_of(jax.jit(lambda x: hvd.allreduce(x, "wrong")), jnp.ones(1 + hvd.rank()))
    text = "Mismatched allreduce of 'allreduce.wrong': rank 0 sent float32 [1], rank 1 sent float32 [2]"
    assert f"HorovodRequestError: {text}" in str(error)
    own = exceptions.translated(error)
    assert type(own) is hvd.HorovodRequestError and str(own).startswith(text) and own.code == 3
    check(jax.jit(hvd.allreduce)(mine()), of_all().mean(0, dtype="float32"))


@pytest.mark.several_ranks
def test_different_rows_can_not_be_gathered_within_jit():
    error = error_of(jax.jit(hvd.allgather), jnp.ones(1 + (hvd.rank() == 0)))
    assert "within jit all ranks must give equally many rows" in str(error)
    assert type(exceptions.translated(error)) is hvd.HorovodRequestError
    check(hvd.allgather(jnp.ones(1 + (hvd.rank() == 0))), numpy.ones(hvd.size() + 1, "float32"))


def test_other_errors_of_jax_are_not_ours():
    assert exceptions.translated(JitError("INTERNAL: something else")) is None
    assert exceptions.translated(KeyError("HorovodInternalError: text (code 10)")) is None


def test_what_knows_its_place_is_traced_again_in_another_world():
    traced = []

    def gather(x):
        traced.append("gather")
        return hvd.allgather(x)

    def reduce(x):
        traced.append("reduce")
        return hvd.allreduce(x)

    gather, reduce = jax.jit(gather), jax.jit(reduce)
    for function in (reduce, gather):  # the latter begins with what earlier tests have left
        jax.clear_caches()
        traced.clear()
        hvd.shutdown()
        hvd.init()
        for _ in range(2):
            function(mine())
            hvd.shutdown()
            hvd.init()
            function(mine())
    assert traced == ["gather"] * 3


def test_nothing_is_copied_outside_of_jit():
    from horovod.jax import _host

    array = mine((1000,))
    assert _host.from_jax(array).ctypes.data == array.unsafe_buffer_pointer()
    room, address = _host.empty_like(_host.from_jax(array))
    assert _host.to_jax(room, array).unsafe_buffer_pointer() == address
