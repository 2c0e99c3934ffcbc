"""Collectives of horovod.jax under JAX's transformations. Gradients are compared with those of the whole computation in
one process, or with what Horovod defines."""

import functools

import jax
import jax.numpy as jnp
import numpy
import pytest

import horovod.jax as hvd
from ranks import WAYS, check, mine, of_all, of_rank

way_of = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def weights(shape):
    """Other ones on each rank, so that gradients are."""
    return jnp.arange(1.0, numpy.prod(shape) + 1).reshape(shape) * (hvd.rank() + 1)


def gradient(operation, array):
    """Returns the gradient of the weighted sum of the results."""
    return jax.grad(lambda x: (lambda y: (y * weights(y.shape)).sum())(operation(x)))(array)


def all_weights(shape):
    return numpy.stack([numpy.arange(1.0, numpy.prod(shape) + 1).reshape(shape) * (r + 1) for r in range(hvd.size())])


def close(result, expected):
    numpy.testing.assert_allclose(numpy.asarray(result), expected, rtol=1e-6)


@way_of
@pytest.mark.parametrize("op", ["Average", "Sum"])
def test_gradient_of_allreduce_is_the_same_reduction(way, op):
    result = way(lambda x: gradient(lambda x: hvd.allreduce(x, None, getattr(hvd, op), 2.0, 3.0), x))(mine())
    reduced = all_weights((4, 3)).sum(0) * 6
    close(result, reduced / (hvd.size() if op == "Average" else 1))


@way_of
def test_gradient_of_a_tree_is_one_group(way):
    def loss(tree):
        reduced = hvd.allreduce(tree, "loss", hvd.Sum)
        return (reduced["a"] ** 2).sum() + 3 * reduced["b"].sum() + reduced["n"].sum()

    tree = {"a": mine((2,)), "b": mine((2, 2)), "n": jnp.arange(2)}
    result = way(jax.grad(loss, allow_int=True))(tree)
    close(result["a"], 2 * of_all((2,)).sum(0) * hvd.size())
    close(result["b"], numpy.full((2, 2), 3.0 * hvd.size()))
    assert result["n"].dtype == jax.dtypes.float0


@way_of
def test_gradient_of_broadcast_is_the_average_on_the_root(way):
    for root in range(hvd.size()):
        operation = functools.partial(hvd.broadcast, root_rank=root)
        result = way(functools.partial(gradient, operation))(mine())
        close(result, all_weights((4, 3)).mean(0) * (hvd.rank() == root))


@way_of
def test_gradient_of_allgather_is_the_average_of_its_rows(way):
    result = way(lambda x: gradient(hvd.allgather, x))(mine())
    rank = hvd.rank()
    close(result, all_weights((4 * hvd.size(), 3)).mean(0)[4 * rank : 4 * rank + 4])


def test_gradient_of_allgather_of_different_rows():
    rank = hvd.rank()
    counts = [r + 1 for r in range(hvd.size())]
    result = gradient(hvd.allgather, mine((counts[rank], 2)))
    start = sum(counts[:rank])
    close(result, all_weights((sum(counts), 2)).mean(0)[start : start + counts[rank]])


@way_of
def test_gradient_of_alltoall_goes_back(way):
    rank, size = hvd.rank(), hvd.size()
    result = way(lambda x: gradient(hvd.alltoall, x))(mine((2 * size, 3)))
    close(result, all_weights((2 * size, 3))[:, 2 * rank : 2 * rank + 2].reshape(-1, 3))


def test_gradient_of_alltoall_with_splits_goes_back():
    rank, size = hvd.rank(), hvd.size()
    splits = [rank + to for to in range(size)]
    array = mine((sum(splits) + 1, 2))
    result = gradient(lambda x: hvd.alltoall(x, splits)[0], array)
    assert result.shape == array.shape
    start = 0
    for to in range(size):  # who got these rows weighs them by where they have arrived
        arrived = sum(sender + to for sender in range(rank))
        received = sum(sender + to for sender in range(size))
        own = numpy.arange(1.0, received * 2 + 1).reshape(received, 2)[arrived : arrived + rank + to] * (to + 1)
        close(result[start : start + rank + to], own)
        start += rank + to
    close(result[start:], numpy.zeros((1, 2)))


@way_of
@pytest.mark.parametrize("op", ["Average", "Sum"])
@pytest.mark.parametrize("more", [0, 1])
def test_gradient_of_reducescatter_is_gathered(way, op, more):
    size = hvd.size()
    rows = 2 * size + more
    result = way(lambda x: gradient(lambda x: hvd.reducescatter(x, None, getattr(hvd, op), 2.0, 3.0), x))(
        mine((rows, 2))
    )
    parts = []
    for rank in range(size):
        shape = (2 + (rank < more), 2)
        parts.append(numpy.arange(1.0, numpy.prod(shape) + 1).reshape(shape) * (rank + 1))
    close(result, numpy.concatenate(parts) * 6 * (size if op == "Sum" else 1))


@way_of
def test_gradients_of_gradients(way):
    def loss(x):
        return (hvd.allreduce(x, op=hvd.Sum) ** 3).sum()

    total, size = of_all((3,)).sum(0), hvd.size()
    close(way(jax.grad(loss))(mine((3,))), 3 * total**2 * size)
    close(way(jax.grad(lambda x: jax.grad(loss)(x).sum()))(mine((3,))), 6 * total * size**2)


@way_of
def test_tangents_are_reduced_alike(way):
    result, tangent = way(lambda x: jax.jvp(lambda x: hvd.allreduce(x, op=hvd.Sum), (x,), (2 * x,)))(mine())
    close(result, of_all().sum(0))
    close(tangent, 2 * of_all().sum(0))


@way_of
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_vmap_is_one_collective_of_the_batch(way, dim):
    size, rank = hvd.size(), hvd.rank()
    shape = (2 * size, 3)
    batch = numpy.stack([of_rank(rank, shape) + i for i in range(5)], dim)
    everything = [of_all(shape) + i for i in range(5)]

    def mapped(operation):
        return way(jax.vmap(operation, in_axes=dim))(jnp.asarray(batch))

    close(mapped(lambda x: hvd.allreduce(x, op=hvd.Sum)), [each.sum(0) for each in everything])
    close(mapped(lambda x: hvd.broadcast(x, 0)), [each[0] for each in everything])
    close(mapped(hvd.allgather), [each.reshape(-1, 3) for each in everything])
    close(mapped(hvd.alltoall), [each[:, 2 * rank : 2 * rank + 2].reshape(-1, 3) for each in everything])
    close(
        mapped(lambda x: hvd.reducescatter(x, op=hvd.Sum)),
        [each.sum(0)[2 * rank : 2 * rank + 2] for each in everything],
    )


@way_of
def test_vmap_of_a_tree_with_a_constant(way):
    one = mine((3,))
    both = way(jax.vmap(lambda x: hvd.allreduce({"x": x, "one": one}, op=hvd.Sum)))(mine((4, 3)))
    close(both["x"], of_all((4, 3)).sum(0))
    close(both["one"], numpy.broadcast_to(of_all((3,)).sum(0), (4, 3)))


@way_of
def test_vmap_of_what_is_not_elementwise_is_refused(way):
    with pytest.raises(hvd.HorovodRequestError, match="Adasum can't be vmapped"):
        way(jax.vmap(lambda x: hvd.allreduce(x, op=hvd.Adasum)))(mine())


@way_of
def test_gradients_of_a_batch(way):
    def loss(x):
        return (hvd.allreduce(x, op=hvd.Sum) ** 2).sum()

    close(way(jax.vmap(jax.grad(loss)))(mine((4, 3))), 2 * of_all((4, 3)).sum(0) * hvd.size())


@way_of
def test_loops_and_branches(way):
    def body(carry, x):
        return carry + hvd.allreduce(x, op=hvd.Sum).sum(), hvd.allreduce(x)

    total, rows = way(lambda x: jax.lax.scan(body, 0.0, x))(mine())
    close(total, of_all().sum())
    close(rows, of_all().mean(0))
    twice = way(lambda x: jax.lax.fori_loop(0, 3, lambda i, x: hvd.allreduce(x, op=hvd.Sum), x))(mine())
    close(twice, of_all().sum(0) * hvd.size() ** 2)
    for chosen in (True, False):
        branch = way(lambda p, x: jax.lax.cond(p, hvd.allreduce, lambda x: hvd.broadcast(x, 0), x))(chosen, mine())
        close(branch, of_all().mean(0) if chosen else of_rank(0))


@way_of
def test_gradient_through_a_loop_and_a_checkpoint(way):
    def loss(x):
        body = jax.checkpoint(lambda c, _: (jnp.sin(hvd.allreduce(c)), None))
        return jax.lax.scan(body, x, None, length=3)[0].sum()

    def alone(x):  # all ranks' arrays at once
        for _ in range(3):
            x = jnp.broadcast_to(jnp.sin(x.mean(0)), x.shape)
        return x.sum()

    expected = jax.grad(alone)(jnp.asarray(of_all()))[hvd.rank()]
    numpy.testing.assert_allclose(way(jax.grad(loss))(mine()), expected, rtol=1e-5)


def test_jit_within_jit():
    mean = jax.jit(hvd.allreduce)
    check(jax.jit(lambda x: mean(mean(x) * 2))(mine()), of_all().mean(0, dtype="float32") * 2)
