"""Mixed precision as docs/jax.md shows it: all ranks leave out the step in which one rank's gradients overflow."""

import jax
import jax.numpy as jnp
import numpy
import optax

import horovod.jax as hvd

SCALE = 2.0**12


def loss_of(params, x, y):
    half = jax.tree_util.tree_map(lambda p: p.astype(jnp.float16), params)
    return SCALE * jnp.mean((x.astype(jnp.float16) @ half["w"] - y).astype(jnp.float32) ** 2)


def test_overflow_on_one_rank_leaves_out_the_step_of_all():
    inner = optax.apply_if_finite(optax.chain(optax.scale(1 / SCALE), optax.sgd(0.1)), max_consecutive_errors=100)
    optimizer = hvd.DistributedOptimizer(inner)
    params = {"w": jnp.ones((8, 1))}
    state = optimizer.init(params)
    x = numpy.random.RandomState(hvd.rank()).randn(64, 8).astype("float32")
    for overflows in (False, True, False):
        own = jnp.asarray(x * 1e6 if overflows and hvd.rank() == hvd.size() - 1 else x)
        gradients = jax.grad(loss_of)(params, own, x[:, :1])
        assert gradients["w"].dtype == jnp.float32
        updates, state = optimizer.update(gradients, state, params)
        after = optax.apply_updates(params, updates)
        assert bool((after["w"] == params["w"]).all()) == overflows
        assert (hvd.allgather(after["w"].T) == after["w"].T).all()
        params = after
