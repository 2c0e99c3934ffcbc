"""horovod.jax within jit and outside, against numpy; every rank knows what all have."""

import collections

import jax
import jax.numpy as jnp
import numpy
import pytest

import horovod.jax as hvd
from ranks import WAYS, JitError, check, mine, of_all, of_rank

DTYPES = ["uint8", "int8", "int16", "int32", "float16", "bfloat16", "float32"]
REDUCTIONS = {
    "Sum": lambda all_: all_.sum(0),
    "Average": lambda all_: all_.sum(0) / len(all_),
    "Min": lambda all_: all_.min(0),
    "Max": lambda all_: all_.max(0),
    "Product": lambda all_: all_.prod(0),
}
Pair = collections.namedtuple("Pair", "first second")

pytestmark = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_allreduce(way, op, dtype):
    array = mine((4, 3), dtype)
    expected = REDUCTIONS[op](of_all((4, 3), dtype).astype("float64")).astype(array.dtype)
    check(way(lambda x: hvd.allreduce(x, op=getattr(hvd, op)))(array), expected)
    check(array, of_rank(hvd.rank(), (4, 3), dtype))


def test_allreduce_of_any_shape(way):
    for shape in [(), (0, 2), (1,), (2, 1, 3), (300, 1000)]:
        check(way(lambda x: hvd.allreduce(x, op=hvd.Sum))(mine(shape)), of_all(shape).sum(0))
    truth = jnp.array([hvd.rank() == 0, True, False])
    check(way(lambda x: hvd.allreduce(x, op=hvd.Max))(truth), numpy.array([True, True, False]))


def test_allreduce_scaled(way):
    check(way(lambda x: hvd.allreduce(x, None, hvd.Sum, 2.0, 4.0))(mine()), of_all().sum(0) * 8)


def test_allreduce_of_adasum(way):
    same = jnp.arange(1.0, 5.0)
    check(way(lambda x: hvd.allreduce(x, op=hvd.Adasum))(same), numpy.arange(1, 5, dtype="float32"))


@pytest.mark.parametrize("name", ["tree", None])
def test_a_tree_is_one_group(way, name):
    tree = {"a": mine((2,)), "b": [mine((2, 2), "int32"), None], "c": Pair(mine(()), 2.0)}
    for _ in range(3):
        result = way(lambda tree: hvd.allreduce(tree, name, hvd.Sum))(tree)
    check(result["a"], of_all((2,)).sum(0))
    check(result["b"][0], of_all((2, 2), "int32").sum(0, dtype="int32"))
    assert result["b"][1] is None and type(result["c"]) is Pair
    check(result["c"].first, of_all(()).sum(0))
    check(result["c"].second, numpy.float32(2 * hvd.size()))


def test_grouped_allreduce_is_that_of_a_list(way):
    results = way(lambda x: hvd.grouped_allreduce((x, x + 1), "pair", hvd.Sum))(mine())
    assert isinstance(results, list)
    check(results[0], of_all().sum(0))
    check(results[1], (of_all() + 1).sum(0))


def test_an_empty_tree_stays_as_it_is(way):
    assert way(lambda: hvd.allreduce({"none": None, "empty": ()}))() == {"none": None, "empty": ()}


def test_compression_is_undone(way):
    array = mine((3,)) / 8
    result = way(lambda x: hvd.allreduce({"x": x, "n": 1}, compression=hvd.Compression.fp16))(array)
    check(result["x"], (of_all((3,)) / 8).mean(0, dtype="float32"))
    check(result["n"], numpy.int32(1))


@pytest.mark.parametrize("dtype", ["bool", "uint32", "uint16", *DTYPES])
def test_what_moves_values(way, dtype):
    size, rank = hvd.size(), hvd.rank()
    everything = of_all((2 * size, 3), dtype)
    array = mine((2 * size, 3), dtype)
    check(way(lambda x: hvd.broadcast(x, size - 1))(array), everything[size - 1])
    check(way(hvd.allgather)(array), everything.reshape(-1, 3))
    check(way(hvd.alltoall)(array), everything[:, 2 * rank : 2 * rank + 2].reshape(-1, 3))


def test_what_moves_trees(way):
    gathered = way(lambda tree: hvd.allgather(tree, "g"))([mine((2,)), mine((1, 2), "int32")])
    check(gathered[0], of_all((2,)).reshape(-1))
    check(gathered[1], of_all((1, 2), "int32").reshape(-1, 2))
    sent = way(lambda tree: hvd.broadcast(tree, 0, "b"))({"x": mine(), "y": mine(())})
    check(sent["x"], of_rank(0))
    check(sent["y"], of_rank(0, ()))


@pytest.mark.parametrize("op", REDUCTIONS)
def test_reducescatter(way, op):
    rank, rows = hvd.rank(), 2 * hvd.size() + 1
    reduced = REDUCTIONS[op](of_all((rows, 2))).astype("float32")
    first = 2 * rank + (rank > 0)
    expected = reduced[first : first + 2 + (rank == 0)]
    check(way(lambda x: hvd.reducescatter(x, op=getattr(hvd, op)))(mine((rows, 2))), expected)


def complex_of(rank, shape):
    return of_rank(rank, shape) * (1 + rank) - 2j * of_rank(rank + 1, shape)


def test_complex_arrays(way):
    every = [complex_of(rank, (hvd.size(), 2)) for rank in range(hvd.size())]
    own, rows = jnp.asarray(every[hvd.rank()], "complex64"), slice(hvd.rank(), hvd.rank() + 1)
    check(way(lambda x: hvd.allreduce(x, op=hvd.Sum))(own), sum(every).astype("complex64"))
    check(way(hvd.allreduce)({"x": own, "y": 1.0})["x"], (sum(every) / hvd.size()).astype("complex64"))
    check(way(lambda x: hvd.reducescatter(x, op=hvd.Sum))(own), sum(every)[rows].astype("complex64"))
    check(way(hvd.allgather)(own), numpy.concatenate(every).astype("complex64"))
    check(way(hvd.alltoall)(own), numpy.concatenate([each[rows] for each in every]).astype("complex64"))
    check(way(lambda x: hvd.broadcast(x, 0))(own), every[0].astype("complex64"))
    check(way(lambda x: hvd.allreduce(x, op=hvd.Sum))(own[0, 0]), sum(every)[0, 0].astype("complex64"))


def test_the_gradient_of_a_complex_sum_is_that_of_one_process(way):
    every = [jnp.asarray(complex_of(rank, (3,)), "complex64") for rank in range(hvd.size())]
    weight = jnp.array([1j, 2.0, 1 - 1j])

    def alone(own):
        return jnp.abs((sum(every) - every[hvd.rank()] + own) * weight).sum()

    found = way(jax.grad(lambda own: jnp.abs(hvd.allreduce(own, op=hvd.Sum) * weight).sum()))(every[hvd.rank()])
    expected = jax.grad(alone)(every[hvd.rank()]) * hvd.size()
    assert numpy.allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("value", [numpy.float32([1, 2]), 1.0, 3, True])
def test_values_that_can_be_arrays_are_taken(way, value):
    check(way(lambda: hvd.broadcast({"x": value}, 0)["x"])(), numpy.asarray(jnp.asarray(value)))


def test_what_is_refused(way):
    with pytest.raises(ValueError, match=r"not supported\. Collectives take uint8, .*, complex128\."):
        way(hvd.allreduce)(jnp.ones(2, "uint16"))
    with pytest.raises(ValueError, match=r"complex128\. Those that compute nothing take uint16, uint32, uint64, too\."):
        way(hvd.allgather)(jnp.ones(2, "float8_e5m2"))
    for operation in (hvd.allreduce, hvd.allgather):
        with pytest.raises(
            ValueError, match=r"^Random keys \(key<fry>\) are not supported: hvd\.broadcast_parameters "
        ):
            way(operation)(jax.random.key(0))
    for op in (hvd.Min, hvd.Max, hvd.Product, hvd.Adasum):
        with pytest.raises(ValueError, match=r"complex64 can be reduced by hvd\.Sum and hvd\.Average, not by hvd\.\w+"):
            way(lambda x, op=op: hvd.allreduce(x, op=op))(jnp.ones(2, "complex64"))
    for operation in (hvd.allgather, hvd.alltoall, hvd.reducescatter):
        for scalar in (jnp.float32(1), jnp.complex64(1j)):
            with pytest.raises(ValueError, match="at least one dimension"):
                way(operation)(scalar)
    with pytest.raises(ValueError, match="op=17"):
        way(lambda x: hvd.allreduce(x, op=17))(mine())
    with pytest.raises(ValueError, match=rf"root rank {hvd.size()} is not in the process set, whose ranks are 0"):
        way(lambda x: hvd.broadcast(x, hvd.size()))(mine())
    with pytest.raises(hvd.HorovodRequestError, match="does not support Adasum"):
        way(lambda x: hvd.reducescatter(x, op=hvd.Adasum))(mine())
    with pytest.raises(TypeError, match="not registered"):
        way(lambda x: hvd.allreduce(x, process_set=hvd.ProcessSet([0])))(mine())
    with pytest.raises(TypeError, match="float"):
        way(lambda x: hvd.broadcast(x, 0.5))(mine())


@pytest.mark.parametrize("kind", [jnp.asarray, numpy.asarray])
def test_numbers_of_any_kind(way, kind):
    two, root = kind(2.0), kind(0)
    check(way(lambda x: hvd.allreduce(x, op=hvd.Sum, prescale_factor=two))(mine()), 2 * of_all().sum(0))
    check(way(lambda x: hvd.broadcast(x, root))(mine()), of_rank(0))


@pytest.mark.several_ranks
def test_rows_that_can_not_be_sent_evenly_are_refused(way):
    with pytest.raises(ValueError, match="alltoall without splits needs rows"):
        way(hvd.alltoall)(jnp.ones(hvd.size() + 1))


@pytest.mark.several_ranks
def test_process_set(way, monkeypatch):
    monkeypatch.setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1")
    last = hvd.add_process_set([hvd.size() - 1])
    if last.included():
        check(way(lambda x: hvd.allreduce(x, process_set=last))(mine()), of_rank(hvd.rank()))
        check(way(lambda x: hvd.allgather(x, process_set=last))(mine()), of_rank(hvd.rank()))
        check(way(lambda x: hvd.reducescatter(x, process_set=last))(mine()), of_rank(hvd.rank()))
        check(way(lambda x: hvd.broadcast(x, hvd.rank(), process_set=last))(mine()), of_rank(hvd.rank()))
    else:
        with pytest.raises((ValueError, JitError), match=f"[Rr]ank {hvd.rank()}"):
            jax.block_until_ready(way(lambda x: hvd.allreduce(x, process_set=last))(mine()))
    hvd.remove_process_set(last)
    with pytest.raises(TypeError, match="not registered"):
        way(lambda x: hvd.allreduce(x + 1, process_set=last))(mine())
