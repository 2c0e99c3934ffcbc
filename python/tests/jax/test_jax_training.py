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
    sophia=lambda: optax.contrib.sophia(0.05, gamma=2.0, update_interval=2),
    sam=lambda: optax.contrib.sam(optax.sgd(0.05), optax.sgd(0.1), opaque_mode=True),
)
FUNCTIONS = dict(sophia=("obj_fn",), sam=("grad_fn",))


@pytest.mark.parametrize("name", DECIDING)
def test_what_decides_by_the_loss_decides_as_one_process(name):
    make = DECIDING[name]

    def result(optimizer, all_of_them):
        @jax.jit
        def step(params, opt_state, x, y):
            def loss(params):
                return loss_of(params, x, y)

            value, grad = jax.value_and_grad(loss)(params)
            extra = dict(
                value=value, grad=grad, value_fn=loss, obj_fn=loss, grad_fn=jax.grad(lambda params, _: loss(params))
            )
            taken = {name: extra[name] for name in FUNCTIONS.get(name, ("value", "grad", "value_fn"))}
            updates, opt_state = optimizer.update(grad, opt_state, params, **taken)
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


def by(decide):
    """An optimizer that gives its state the result of `decide`, called with the further arguments of its update."""

    def update(updates, state, params=None, **extra):
        return updates, decide(**extra)

    return optax.GradientTransformationExtraArgs(lambda params: (), update)


def test_other_arguments_of_an_update():
    own = jnp.float32(hvd.rank() + 1)
    mean = (hvd.size() + 1) / 2

    def state_of(decide, op=hvd.Average, **extra):
        optimizer = hvd.DistributedOptimizer(by(decide), op=op)
        return optimizer.update(own, optimizer.init(own), own, **extra)[1]

    for op in (hvd.Average, hvd.Sum):
        check(state_of(lambda loss: loss, op, loss=own), numpy.float32(mean))
    check(state_of(lambda labels: labels, labels=own[None]), numpy.asarray(own)[None])
    assert state_of(lambda rate: rate, rate=0.1) == 0.1
    reduced = hvd.grad(lambda x: x * own, op=hvd.Sum)
    check(state_of(lambda gradient: gradient(1.0), hvd.Sum, gradient=reduced), numpy.float32(mean * hvd.size()))
    total = state_of(lambda obj_fn: jax.hessian(obj_fn)(1.0), hvd.Sum, obj_fn=lambda x: own * x**3)
    check(total, numpy.float32(6 * mean * hvd.size()))
    with pytest.raises(
        ValueError, match=r"^The argument curvature of hvd\.DistributedOptimizer's update is a function\. "
    ):
        state_of(lambda curvature: curvature(1.0), curvature=lambda x: x * own)


def with_value(optimizer):
    """`optimizer`, whose update also gets a loss."""

    def update(updates, state, params=None):
        return optimizer.update(updates, state, params, value=jnp.float32(hvd.rank()))

    return optimizer._replace(update=update)


@way_of
def test_what_decides_by_a_ranks_own_loss_beside_the_optimizer_is_refused(way):
    own = hvd.DistributedOptimizer(optax.sgd(0.1))
    plateau = optax.contrib.reduce_on_plateau()
    beside = "A transformation beside hvd.DistributedOptimizer, as in optax.chain, takes the argument value of update"
    for around, text in [
        (optax.chain(own, plateau), beside),
        (
            optax.chain(optax.clip(1.0), optax.chain(own, optax.scale(1.0)), optax.chain(optax.scale(1.0), plateau)),
            beside,
        ),
        (optax.named_chain(("own", own), ("plateau", plateau)), beside),
        (optax.contrib.mechanize(own), "optax.contrib.mechanize around hvd.DistributedOptimizer"),
    ]:
        with pytest.raises(
            ValueError, match=rf"^{text}: it would decide by this rank's batch alone, .* Put it inside: "
        ):
            trained(with_value(around), way)
    plain = trained(optax.sgd(0.1), all_of_them=True)
    inside = hvd.DistributedOptimizer(optax.chain(optax.sgd(0.1), optax.contrib.reduce_on_plateau(patience=100)))
    close(trained(with_value(optax.chain(inside, optax.scale_by_schedule(lambda value: 1.0))), way), plain)
    by_loss = optax.conditionally_transform(own, lambda step, value: value < 0.5, forward_extra_args=True)
    with pytest.raises(ValueError, match=r"^A conditional transformation with forward_extra_args around hvd\."):
        trained(with_value(by_loss), way)
    close(trained(optax.conditionally_mask(own, lambda step: step >= 0), way), plain)


@way_of
def test_no_transformation_passes_on_gradients_of_one_rank(way):
    def odd(step):
        return step % 2 == 1

    with pytest.raises(ValueError, match=r"^optax.conditionally_transform around hvd\."):
        trained(optax.conditionally_transform(hvd.DistributedOptimizer(optax.sgd(0.1)), odd), way)
    some = optax.chain(optax.conditionally_transform(optax.scale(0.5), odd), optax.sgd(0.1))
    close(trained(hvd.DistributedOptimizer(some), way), trained(some, all_of_them=True))
    mask = optax.conditionally_mask(hvd.DistributedOptimizer(optax.sgd(0.1)), odd)
    close(trained(mask, way), trained(optax.conditionally_mask(optax.sgd(0.1), odd), all_of_them=True))


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
