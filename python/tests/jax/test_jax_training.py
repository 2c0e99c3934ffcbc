"""Training with horovod.jax equals that of one process on the joined batches."""

import jax
import jax.numpy as jnp
import numpy
import optax
import pytest

import horovod.jax as hvd
from ranks import WAYS, check

way_of = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
RANDOM = numpy.random.RandomState(0)
PARAMS = {
    "w": jnp.asarray(RANDOM.randn(4, 8), jnp.float32),
    "layers": [jnp.asarray(RANDOM.randn(8, 1), jnp.float32), jnp.zeros(1)],
}
STEPS, BATCH = 6, 8


def batches(all_of_them):
    """The inputs and targets of each step: of this rank, or of all ranks together."""
    inputs = numpy.random.RandomState(1).randn(STEPS, hvd.size(), BATCH, 4).astype("float32")
    targets = inputs.sum(-1, keepdims=True)
    for x, y in zip(inputs, targets):
        yield (x.reshape(-1, 4), y.reshape(-1, 1)) if all_of_them else (x[hvd.rank()], y[hvd.rank()])


def loss_of(params, x, y):
    hidden = jnp.tanh(x @ params["w"])
    return ((hidden @ params["layers"][0] + params["layers"][1] - y) ** 2).mean()


def trained(optimizer, way=jax.jit, gradient=jax.grad, all_of_them=False):
    @way
    def step(params, opt_state, x, y):
        updates, opt_state = optimizer.update(gradient(loss_of)(params, x, y), opt_state, params)
        return optax.apply_updates(params, updates), opt_state

    params, opt_state = PARAMS, optimizer.init(PARAMS)
    for x, y in batches(all_of_them):
        params, opt_state = step(params, opt_state, x, y)
    return params


def close(params, expected, atol=1e-5):
    for one, other in zip(jax.tree_util.tree_leaves(params), jax.tree_util.tree_leaves(expected)):
        numpy.testing.assert_allclose(one, other, atol=atol)


@way_of
@pytest.mark.parametrize("fields", [{}, {"gradient_predivide_factor": 2.0}])
def test_optimizer_equals_one_process(way, fields):
    alone = trained(optax.adam(1e-2), all_of_them=True)
    close(trained(hvd.DistributedOptimizer(optax.adam(1e-2), **fields), way), alone)


def test_optimizer_within_others():
    def clipped(optimizer):
        return optax.chain(optimizer, optax.clip_by_global_norm(0.01))

    alone = trained(clipped(optax.adam(1e-2)), all_of_them=True)
    close(trained(clipped(hvd.DistributedOptimizer(optax.adam(1e-2)))), alone)
    named = optax.inject_hyperparams(lambda rate: hvd.DistributedOptimizer(optax.sgd(rate)))(0.1)
    close(trained(named), trained(optax.sgd(0.1), all_of_them=True))


DECIDING = dict(
    lbfgs=optax.lbfgs,
    plateau=lambda: optax.chain(optax.sgd(0.01), optax.contrib.reduce_on_plateau(patience=1, rtol=0.3)),
    polyak=optax.polyak_sgd,
    backtracking=lambda: optax.chain(optax.sgd(0.5), optax.scale_by_backtracking_linesearch(5, store_grad=True)),
)


@pytest.mark.parametrize("make", DECIDING.values(), ids=DECIDING)
def test_what_decides_by_the_loss_decides_as_one_process(make):
    def result(optimizer, all_of_them):
        @jax.jit
        def step(params, opt_state, x, y):
            def loss(params):
                return loss_of(params, x, y)

            value, grad = jax.value_and_grad(loss)(params)
            updates, opt_state = optimizer.update(grad, opt_state, params, value=value, grad=grad, value_fn=loss)
            return optax.apply_updates(params, updates), opt_state

        optimizer = optax.with_extra_args_support(optimizer)
        params, opt_state = PARAMS, optimizer.init(PARAMS)
        for x, y in batches(all_of_them):
            params, opt_state = step(params, opt_state, x, y)
        return params

    params = result(hvd.DistributedOptimizer(make()), False)
    close(params, result(make(), True), atol=1e-3)
    for one, other in zip(
        jax.tree_util.tree_leaves(params), hvd.broadcast_object(jax.tree_util.tree_leaves(params), 0)
    ):
        numpy.testing.assert_array_equal(one, other)


def test_batches_that_are_accumulated():
    alone = trained(optax.MultiSteps(optax.adam(1e-2), 3), all_of_them=True)
    close(trained(optax.MultiSteps(hvd.DistributedOptimizer(optax.adam(1e-2)), 3)), alone)


def test_optimizer_with_a_sum_and_compression():
    alone = trained(optax.sgd(0.01 * hvd.size()), all_of_them=True)
    close(trained(hvd.DistributedOptimizer(optax.sgd(0.01), op=hvd.Sum)), alone)
    optimizer = hvd.DistributedOptimizer(optax.sgd(0.01), op=hvd.Sum, compression=hvd.Compression.fp16)
    close(trained(optimizer), alone, atol=2e-3)


@way_of
def test_gradients_that_are_reduced_where_they_are_made(way):
    alone = trained(optax.adam(1e-2), all_of_them=True)
    close(trained(optax.adam(1e-2), way, gradient=hvd.grad), alone)
    close(trained(optax.adam(1e-2), way, gradient=lambda loss: lambda *args: hvd.value_and_grad(loss)(*args)[1]), alone)


@way_of
def test_values_stay_those_of_the_rank(way):
    own = jnp.float32(hvd.rank() + 1)

    def loss(a, b):
        return a * b, {"aux": b}

    (value, aux), (da, db) = way(hvd.value_and_grad(loss, argnums=(0, 1), has_aux=True, op=hvd.Sum))(own, 2 * own)
    total = sum(range(1, hvd.size() + 1))
    check(value, numpy.asarray(2 * own**2))
    check(aux["aux"], numpy.asarray(2 * own))
    check(da, numpy.float32(2 * total))
    check(db, numpy.float32(total))
    gradient, aux = way(hvd.grad(loss, has_aux=True))(own, 2 * own)
    check(gradient, numpy.float32(2 * total / hvd.size()))
    check(aux["aux"], numpy.asarray(2 * own))


def test_all_gradients_are_one_call():
    optimizer = hvd.DistributedOptimizer(optax.adam(1e-2))
    text = jax.jit(optimizer.update).lower(PARAMS, optimizer.init(PARAMS)).as_text()
    assert text.count("@hvd_jax_collective") == 1


def test_what_is_refused():
    with pytest.raises(TypeError, match=r"needs an optax.GradientTransformation, got <class 'int'>"):
        hvd.DistributedOptimizer(3)
    for function in (hvd.DistributedOptimizer, lambda _, **fields: hvd.grad(loss_of, **fields)):
        with pytest.raises(ValueError, match="gradient_predivide_factor not supported with op != Average"):
            function(optax.sgd(1.0), op=hvd.Sum, gradient_predivide_factor=2.0)
        with pytest.raises(ValueError, match="op=9"):
            function(optax.sgd(1.0), op=9)
        with pytest.raises(ValueError, match="gradient_predivide_factor must not be 0"):
            function(optax.sgd(1.0), gradient_predivide_factor=0)
        with pytest.raises(ValueError, match=r"compression='fp16' is not one of hvd\.Compression"):
            function(optax.sgd(1.0), compression="fp16")
        with pytest.raises(TypeError, match="is not registered"):
            function(optax.sgd(1.0), process_set=hvd.ProcessSet([0]))
    with pytest.raises(ValueError, match=r"is a hvd\.DistributedOptimizer already"):
        hvd.DistributedOptimizer(hvd.DistributedOptimizer(optax.sgd(1.0)))


@way_of
def test_what_leaves_out_steps_by_a_ranks_own_gradients_is_refused(way):
    def skips(updates, step, params):
        return optax.skip_not_finite(updates, step, params)

    own = hvd.DistributedOptimizer(optax.sgd(0.1))
    for around, name in [
        (optax.apply_if_finite(own, 3), "optax.apply_if_finite"),
        (optax.chain(optax.apply_if_finite(optax.chain(own, optax.clip(1.0)), 3)), "optax.apply_if_finite"),
        (
            optax.MultiSteps(own, 2, should_skip_update_fn=optax.skip_not_finite),
            "optax.MultiSteps with should_skip_update_fn",
        ),
        (optax.MultiSteps(own, 2, should_skip_update_fn=skips), "optax.MultiSteps with should_skip_update_fn"),
    ]:
        with pytest.raises(ValueError, match=rf"^{name} around hvd\.DistributedOptimizer: .* Put it inside, "):
            trained(around, way)
    alone = trained(optax.sgd(0.1), all_of_them=True)
    close(trained(hvd.DistributedOptimizer(optax.apply_if_finite(optax.sgd(0.1), 3)), way), alone)
    steps = optax.MultiSteps(optax.sgd(0.1), 2, should_skip_update_fn=optax.skip_not_finite)
    close(
        trained(hvd.DistributedOptimizer(steps.gradient_transformation()), way),
        trained(optax.MultiSteps(optax.sgd(0.1), 2), all_of_them=True),
    )
    with pytest.raises(TypeError, match=r"got <class 'optax.*MultiSteps'>: call its gradient_transformation\(\)\.$"):
        hvd.DistributedOptimizer(steps)


@pytest.mark.parametrize("compression", [hvd.Compression.none, hvd.Compression.fp16])
def test_gradients_of_integers_stay_as_they_are(compression):
    params = {"count": jnp.arange(3), "w": jnp.float32(2.0)}
    gradients = jax.grad(lambda params: params["w"] * (hvd.rank() + 1), allow_int=True)(params)
    optimizer = hvd.DistributedOptimizer(optax.identity(), op=hvd.Sum, compression=compression)
    updates, _ = optimizer.update(gradients, optimizer.init(params), params)
    assert updates["count"].dtype == jax.dtypes.float0 and updates["count"].shape == (3,)
    check(updates["w"], numpy.float32(sum(range(1, hvd.size() + 1))))
    assert hvd.allreduce(gradients["count"]).dtype == jax.dtypes.float0


@pytest.mark.several_ranks
def test_process_set(monkeypatch):
    monkeypatch.setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1")
    last = hvd.add_process_set([hvd.size() - 1])
    if last.included():
        close(trained(hvd.DistributedOptimizer(optax.sgd(0.1), process_set=last)), trained(optax.sgd(0.1)))
        close(trained(optax.sgd(0.1), gradient=lambda loss: hvd.grad(loss, process_set=last)), trained(optax.sgd(0.1)))
    hvd.remove_process_set(last)
