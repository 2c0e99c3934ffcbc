"""The contract of DistributedOptimizer and PartialDistributedOptimizer, beside what fit() shows."""

import gc
import weakref

import numpy
import pytest

from kerases import (
    BACKEND,
    BATCH,
    CLOSE,
    JIT,
    KINDS,
    NAME,
    assert_weights,
    batches,
    fit,
    hvd,
    keras,
    model_of,
    optimizers,
    sgd,
    value_of,
    variables_of,
    weights_alone,
)


def variable(value):
    if NAME == "keras2":
        import tensorflow as tf

        return tf.Variable(value)
    return keras.Variable(numpy.float32(value))


def tensor(value):
    if NAME == "keras2":
        import tensorflow as tf

        return tf.constant(value)
    return keras.ops.convert_to_tensor(numpy.float32(value))


def applied(optimizer, variables, gradients):
    optimizer.apply_gradients(zip([tensor(gradient) for gradient in gradients], variables))
    return [value_of(each) for each in variables]


def plain(kind, rate=1.0):
    return optimizers(kind).SGD(rate)


@pytest.mark.parametrize("kind", KINDS)
def test_its_class_has_the_name_of_the_optimizers(kind):
    own = optimizers(kind).Adam(0.01)
    optimizer = hvd.DistributedOptimizer(own)
    assert isinstance(optimizer, optimizers(kind).Adam) and type(optimizer).__name__ == "Adam"
    assert optimizer.get_config() == own.get_config() and optimizer is not own


@pytest.mark.parametrize("passes", [1, 2])
def test_it_has_what_a_script_has_set_on_an_unused_optimizer(passes):
    """This includes values that Keras does not write into its configuration."""
    own = keras.optimizers.AdamW(1.0, weight_decay=0.5)
    kept, decayed = variable([1.0]), variable([1.0])
    own.exclude_from_weight_decay(var_list=[kept])
    own.iterations.assign(10)
    optimizer = hvd.DistributedOptimizer(own, backward_passes_per_step=passes)
    assert int(optimizer.iterations) == 10
    for _ in range(passes):
        values = applied(optimizer, [kept, decayed], [[0.0], [0.0]])
    numpy.testing.assert_allclose(values, [[1.0], [0.5]])


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_made_of_its_configuration_is_distributed(kind):
    optimizer = hvd.DistributedOptimizer(plain(kind))
    for made in (optimizer.from_config(optimizer.get_config()), type(optimizer).from_config(optimizer.get_config())):
        assert made.get_config() == optimizer.get_config()
        (value,) = applied(made, [variable([0.0])], [[float(hvd.rank())]])
        numpy.testing.assert_allclose(value, [-(hvd.size() - 1) / 2])


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_that_are_applied_are_reduced(kind):
    optimizer = hvd.DistributedOptimizer(plain(kind))
    variables = [variable([1.0, 2.0]), variable([[3.0]])]
    first, second = applied(optimizer, variables, [[hvd.rank(), 1.0], [[2.0 * hvd.rank()]]])
    mean = (hvd.size() - 1) / 2
    numpy.testing.assert_allclose(first, [1.0 - mean, 1.0])
    numpy.testing.assert_allclose(second, [[3.0 - 2 * mean]])


@pytest.mark.parametrize("kind", KINDS)
def test_local_variables_keep_their_gradients(kind):
    own, shared = variable([0.0]), variable([0.0])
    for scales, expected in ((True, (hvd.rank() + 1.0) / hvd.size()), (False, hvd.rank() + 1.0)):
        optimizer = hvd.DistributedOptimizer(plain(kind), scale_local_gradients=scales)
        optimizer.register_local_var(own)
        own.assign([0.0])
        shared.assign([0.0])
        first, second = applied(optimizer, [own, shared], [[hvd.rank() + 1.0], [hvd.rank() + 1.0]])
        numpy.testing.assert_allclose(first, [-expected], rtol=1e-6)
        numpy.testing.assert_allclose(second, [-(hvd.size() + 1) / 2], rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_local_layers(kind):
    model = model_of()
    hidden = model.layers[-2]
    before = [value.copy() for value in model.get_weights()]
    optimizer = hvd.PartialDistributedOptimizer(plain(kind, 0.1), local_layers=hidden, scale_local_gradients=False)
    optimizer.apply_gradients(
        (tensor(numpy.full(weight.shape, hvd.rank() + 1.0, "float32")), weight) for weight in model.trainable_variables
    )
    steps = [(old - new).mean() / 0.1 for old, new in zip(before, model.get_weights())]
    numpy.testing.assert_allclose(steps[:2], [hvd.rank() + 1.0] * 2, rtol=1e-5)
    numpy.testing.assert_allclose(steps[2:], [(hvd.size() + 1) / 2] * 2, rtol=1e-5)


def test_local_layers_with_several_passes():
    model = model_of()
    before = [value.copy() for value in model.get_weights()]
    optimizer = hvd.PartialDistributedOptimizer(
        plain("new", 0.1), local_layers=model.layers[-2], scale_local_gradients=False, backward_passes_per_step=2
    )
    for _ in range(2):
        optimizer.apply_gradients(
            (tensor(numpy.full(weight.shape, hvd.rank() + 1.0, "float32")), weight)
            for weight in model.trainable_variables
        )
    steps = [(old - new).mean() / 0.1 for old, new in zip(before, model.get_weights())]
    numpy.testing.assert_allclose(steps[:2], [2 * (hvd.rank() + 1.0)] * 2, rtol=1e-5)
    numpy.testing.assert_allclose(steps[2:], [hvd.size() + 1.0] * 2, rtol=1e-5)


def test_local_layers_may_be_built_later():
    layer = keras.layers.Dense(1)
    optimizer = hvd.PartialDistributedOptimizer(plain("new"), local_layers=[layer], scale_local_gradients=False)
    layer.build((None, 2))
    kernel = layer.trainable_weights[0]
    kernel.assign(numpy.zeros((2, 1), "float32"))
    (value,) = applied(optimizer, [kernel], [[[float(hvd.rank())]] * 2])
    numpy.testing.assert_allclose(value, [[-hvd.rank()]] * 2)


def test_non_layer_is_refused():
    with pytest.raises(ValueError, match="local_layers must hold Keras layers only"):
        hvd.PartialDistributedOptimizer(sgd(), local_layers=["hidden"])


@pytest.mark.several_ranks
@pytest.mark.parametrize("kind", KINDS)
def test_ranks_outside_of_the_process_set_train_alone(kind, monkeypatch):
    monkeypatch.setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1")
    members = hvd.add_process_set(list(range(hvd.size() - 1)))
    optimizer = hvd.DistributedOptimizer(plain(kind), process_set=members)
    (value,) = applied(optimizer, [variable([0.0])], [[float(hvd.rank())]])
    mean = (hvd.size() - 2) / 2
    numpy.testing.assert_allclose(value, [-(mean if hvd.rank() < hvd.size() - 1 else hvd.rank())])
    hvd.remove_process_set(members)


@pytest.mark.parametrize("kind", KINDS)
def test_an_optimizer_that_has_been_used_keeps_its_state(kind):
    def steps(optimizer, value):
        for _ in range(3):
            applied(optimizer, [value], [[1.0]])
        return value_of(value)

    own, expected = sgd(kind), variable([0.0])
    twice = steps(own, expected), steps(own, expected)
    once = variable([0.0])
    used = sgd(kind)
    numpy.testing.assert_allclose(steps(used, once), twice[0])
    numpy.testing.assert_allclose(steps(hvd.DistributedOptimizer(used), once), twice[1], rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_schedule_stays(kind):
    class Halving(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            import keras as keras3

            cast = (
                keras3.ops.cast(step, "float32") if NAME == "keras3" else __import__("tensorflow").cast(step, "float32")
            )
            return 1.0 / 2.0**cast

        def get_config(self):
            return {}

    optimizer = hvd.DistributedOptimizer(plain(kind, Halving()))
    value = variable([0.0])
    for _ in range(3):
        applied(optimizer, [value], [[1.0]])
    numpy.testing.assert_allclose(value_of(value), [-1.75])


@pytest.mark.parametrize(
    "options, text",
    [
        ({"op": hvd.Adasum}, "op currently only supports Average and Sum"),
        (
            {"op": hvd.Sum, "gradient_predivide_factor": 2.0},
            "gradient_predivide_factor not supported with op != Average",
        ),
        ({"groups": 0}, "groups should be"),
        ({"groups": "all"}, "groups should be"),
        ({"backward_passes_per_step": 0}, "backward_passes_per_step must be > 0"),
        ({"backward_passes_per_step": 1.5}, "must be > 0, an integer, not 1.5"),
        ({"gradient_predivide_factor": 0.0}, "gradient_predivide_factor must not be 0"),
        ({"compression": "fp16"}, "compression='fp16' is not one of hvd.Compression"),
    ],
)
def test_bad_arguments(options, text):
    with pytest.raises(ValueError, match=text) as caught:
        hvd.DistributedOptimizer(sgd(), **options)
    assert "\n" not in str(caught.value)


def test_a_number_of_passes_of_any_integer_type():
    optimizer = hvd.DistributedOptimizer(plain("new"), backward_passes_per_step=numpy.int64(2))
    value = variable([0.0])
    for expected in (0.0, -2.0):
        applied(optimizer, [value], [[1.0]])
        numpy.testing.assert_allclose(value_of(value), [expected])


class Stranger:
    """An optimizer of no Keras package."""


def test_what_can_not_be_made_distributed():
    with pytest.raises(ValueError, match="needs an optimizer of Keras, got str"):
        hvd.DistributedOptimizer("sgd")
    with pytest.raises(ValueError, match=r"needs an optimizer of Keras, got \S*test_keras_optimizer\.Stranger"):
        hvd.DistributedOptimizer(Stranger())
    with pytest.raises(ValueError, match=r"is a hvd\.DistributedOptimizer already"):
        hvd.DistributedOptimizer(hvd.DistributedOptimizer(sgd()))


def test_a_gradient_that_is_missing():
    optimizer = hvd.DistributedOptimizer(plain("new"))
    variables = [variable([0.0]), variable([0.0])]
    optimizer.build(variables)
    with pytest.warns(UserWarning) if NAME == "keras3" else warnings_of_keras2():
        optimizer.apply_gradients(zip([None, tensor([float(hvd.rank())])], variables))
    numpy.testing.assert_allclose(value_of(variables[1]), [-(hvd.size() - 1) / 2])


def warnings_of_keras2():
    import contextlib

    return contextlib.nullcontext()


@pytest.mark.only("keras3")
def test_what_scripts_for_keras_2_ask_for():
    optimizer = hvd.DistributedOptimizer(sgd(rate=0.5))
    assert float(optimizer.lr) == 0.5
    optimizer.lr = 0.25
    assert float(optimizer.learning_rate) == 0.25
    assert optimizer.variables() == optimizer.variables and len(optimizer.variables()) == 2


@pytest.mark.only("keras3")
def test_accumulation_of_keras_itself():
    optimizer = hvd.DistributedOptimizer(sgd(gradient_accumulation_steps=2))
    model = model_of()
    model.compile(optimizer, "mse", jit_compile=JIT)
    fit(model, batches()[1], BATCH)
    assert_weights(model, weights_alone(joined=2))
    with pytest.raises(ValueError, match="gradient_accumulation_steps=2 already; use one of the two"):
        hvd.DistributedOptimizer(sgd(gradient_accumulation_steps=2), backward_passes_per_step=2)


@pytest.mark.only("jax")
def test_a_model_that_keras_distributes_is_refused():
    parallel = keras.distribution.DataParallel(auto_shard_dataset=False)
    keras.distribution.set_distribution(parallel)
    try:
        with pytest.raises(ValueError, match=r"keras\.distribution and hvd\.DistributedOptimizer would both"):
            hvd.DistributedOptimizer(sgd())
    finally:
        keras.distribution.set_distribution(None)


@pytest.mark.only("tensorflow")
@pytest.mark.parametrize("in_function", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_reduced_once_with_a_distributed_tape(kind, in_function):
    """Also when the gradients are changed in between, which shows with Sum."""
    import tensorflow as tf

    import horovod.tensorflow as hvd_tf

    value = variable([0.0])
    optimizer = hvd.DistributedOptimizer(plain(kind), op=hvd.Sum)

    def step():
        with hvd_tf.DistributedGradientTape(tf.GradientTape(), op=hvd.Sum) as tape:
            loss = tf.reduce_sum(tf.convert_to_tensor(value)) * (hvd.rank() + 1.0)
        (gradient,) = tape.gradient(loss, [value if NAME == "keras2" else value.value])
        optimizer.apply_gradients([(gradient / 2.0, value)])

    optimizer.build([value]) if kind == "new" else None
    run = tf.function(step) if in_function else step
    for steps in (1, 2):
        run()
        numpy.testing.assert_allclose(value_of(value), [-steps * hvd.size() * (hvd.size() + 1) / 4])
    # A step of another loop is reduced as ever.
    value.assign([0.0])
    (after,) = applied(optimizer, [value], [[1.0]])
    numpy.testing.assert_allclose(after, [-hvd.size()])


@pytest.mark.only("tensorflow")
@pytest.mark.parametrize("in_function", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_a_distributed_tape_that_are_not_applied(kind, in_function):
    """The script looks at them only, and applies others of the same variables, which are reduced."""
    import tensorflow as tf

    import horovod.tensorflow as hvd_tf

    value = variable([0.0])
    source = value if NAME == "keras2" else value.value
    optimizer = hvd.DistributedOptimizer(plain(kind))
    optimizer.build([value]) if kind == "new" else None

    def step():
        with tf.GradientTape(persistent=True) as tape:
            loss = tf.reduce_sum(tf.convert_to_tensor(value)) * (hvd.rank() + 1.0)
        averaged = hvd_tf.DistributedGradientTape(tape).gradient(loss, [source])
        optimizer.apply_gradients([(tape.gradient(loss, source), value)])
        return tf.linalg.global_norm(averaged)

    run = tf.function(step) if in_function else step
    average = (hvd.size() + 1) / 2
    for steps in (1, 2):
        numpy.testing.assert_allclose(run(), average)
        numpy.testing.assert_allclose(value_of(value), [-steps * average])


@pytest.mark.only("tensorflow")
@pytest.mark.parametrize("scales", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_local_gradients_beside_those_of_a_distributed_tape_in_a_function(kind, scales):
    """The averages come from a function within the function, or scale the local gradient."""
    import tensorflow as tf

    import horovod.tensorflow as hvd_tf

    value = variable([0.0])
    source = value if NAME == "keras2" else value.value
    optimizer = hvd.DistributedOptimizer(plain(kind))
    optimizer.build([value]) if kind == "new" else None
    _ = optimizer.iterations

    def loss_of():
        return tf.reduce_sum(tf.convert_to_tensor(value)) * (hvd.rank() + 1.0)

    def norm_of_averages():
        with tf.GradientTape() as tape:
            loss = loss_of()
        return tf.linalg.global_norm(hvd_tf.DistributedGradientTape(tape).gradient(loss, [source]))

    within = norm_of_averages if scales else tf.function(norm_of_averages)

    @tf.function
    def step():
        norm = within()
        with tf.GradientTape() as tape:
            loss = loss_of()
        gradient = tape.gradient(loss, source)
        optimizer.apply_gradients([(gradient * tf.minimum(1.0, 100.0 / norm) if scales else gradient, value)])

    step()
    numpy.testing.assert_allclose(value_of(value), [-(hvd.size() + 1) / 2])


def unchanged(tf, gradient):
    return tf.identity(gradient)


def clipped(tf, gradient):
    return tf.clip_by_global_norm([gradient], 1000.0)[0][0]


def clipped_if_needed(tf, gradient):
    return tf.cond(tf.reduce_sum(gradient) > 0.0, lambda: gradient * 1.0, lambda: gradient)


@pytest.mark.only("tensorflow")
@pytest.mark.parametrize("change", [unchanged, clipped, clipped_if_needed])
@pytest.mark.parametrize("in_condition", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_a_tape_are_averaged_again_in_a_graph_if_they_have_changed(kind, in_condition, change):
    import tensorflow as tf

    import horovod.tensorflow as hvd_tf

    value = variable([0.0])
    optimizer = hvd.DistributedOptimizer(plain(kind))
    optimizer.build([value]) if kind == "new" else None
    _ = optimizer.iterations
    again = []
    optimizer._hvd.reduce = lambda grads, _: again.extend(grads) or grads

    @tf.function
    def step():
        with hvd_tf.DistributedGradientTape(tf.GradientTape()) as tape:
            loss = tf.reduce_sum(tf.convert_to_tensor(value)) * (hvd.rank() + 1.0)
        (gradient,) = tape.gradient(loss, [value if NAME == "keras2" else value.value])
        gradient = change(tf, gradient)

        def apply():
            optimizer.apply_gradients([(gradient, value)])
            return 0

        tf.cond(tf.reduce_sum(gradient) > 0.0, apply, lambda: 0) if in_condition else apply()

    step()
    numpy.testing.assert_allclose(value_of(value), [-(hvd.size() + 1) / 2])
    assert (not again) == (change is unchanged)


@pytest.mark.only("tensorflow")
def test_a_distributed_tape_keeps_no_variable_alive():
    """No distributed optimizer applies the gradients."""
    import tensorflow as tf

    import horovod.tensorflow as hvd_tf

    value = tf.Variable([1.0])
    with hvd_tf.DistributedGradientTape(tf.GradientTape()) as tape:
        loss = value * 2.0
    tape.gradient(loss, [value])
    alive = weakref.ref(value)
    del value, loss, tape
    gc.collect()
    assert alive() is None


@pytest.mark.only("keras2")
@pytest.mark.parametrize("kind", KINDS)
def test_compute_gradients_returns_reduced_ones(kind):
    import tensorflow as tf

    optimizer = hvd.DistributedOptimizer(plain(kind))
    value = tf.Variable([0.0])
    compute = optimizer.compute_gradients if kind == "new" else optimizer._compute_gradients
    pairs = compute(lambda: tf.reduce_sum(value) * hvd.rank(), [value])
    mean = (hvd.size() - 1) / 2
    numpy.testing.assert_allclose(pairs[0][0], [mean])
    optimizer.apply_gradients(pairs)
    numpy.testing.assert_allclose(value, [-mean])
    optimizer.minimize(lambda: tf.reduce_sum(value) * hvd.rank(), [value])
    numpy.testing.assert_allclose(value, [-2 * mean])


@pytest.mark.only("keras2")
@pytest.mark.parametrize("averages", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_accumulation_applies_every_last_pass_and_counts_all(kind, averages):
    import tensorflow as tf

    passes = 4
    optimizer = hvd.DistributedOptimizer(
        plain(kind),
        backward_passes_per_step=passes,
        average_aggregated_gradients=averages,
        sparse_as_dense=True,
    )
    _ = optimizer.iterations
    x, y = tf.Variable([0.0]), tf.Variable([1.0, 2.0])
    compute = optimizer.compute_gradients if kind == "new" else optimizer._compute_gradients

    @tf.function
    def step():
        pairs = compute(lambda: x - tf.gather(y, [0]), [x, y])
        if kind == "new":
            optimizer.build([x, y])
        optimizer.apply_gradients(pairs, experimental_aggregate_gradients=False)

    for done in range(1, 11):
        step()
        moved = done // passes * (1 if averages else passes)
        numpy.testing.assert_allclose(x, [-moved])
        numpy.testing.assert_allclose(y, [1.0 + moved, 2.0])
        assert int(optimizer.iterations) == done
    assert int(optimizer._accumulation.counter) == 10 % passes


@pytest.mark.only("keras2")
def test_an_infinite_gradient_is_gone_after_its_update():
    import tensorflow as tf

    optimizer = hvd.DistributedOptimizer(plain("legacy"), backward_passes_per_step=2)
    value = tf.Variable([0.0])
    for step in range(4):
        gradient = tf.constant([float("inf") if step == 0 else 1.0])
        optimizer.apply_gradients([(gradient, value)])
        if step == 1:
            assert not numpy.isfinite(value)
            value.assign([0.0])
    numpy.testing.assert_allclose(value, [-2.0])


@pytest.mark.only("keras2")
@pytest.mark.parametrize("kind", KINDS)
def test_sparse_gradients_can_not_be_accumulated(kind):
    import tensorflow as tf

    optimizer = hvd.DistributedOptimizer(plain(kind), backward_passes_per_step=2)
    gradient = tf.IndexedSlices(tf.ones((1, 1)), tf.constant([0]), tf.constant([2, 1]))
    with pytest.raises(ValueError, match="set sparse_as_dense=True"):
        optimizer.apply_gradients([(gradient, tf.Variable(tf.zeros((2, 1))))])


def test_it_trains_as_well_eagerly():
    model = model_of()
    model.compile(hvd.DistributedOptimizer(sgd()), "mse", run_eagerly=True)
    fit(model, batches()[1], BATCH, epochs=1)
    alone = model_of()
    alone.compile(sgd(), "mse", run_eagerly=True)
    fit(alone, batches()[0], BATCH * hvd.size(), epochs=1)
    assert_weights(model, alone.get_weights())
    for own, other in zip(variables_of(model.optimizer), variables_of(alone.optimizer)):
        numpy.testing.assert_allclose(own, other, **CLOSE)


def test_the_backend_is_the_one_asked_for():
    assert (keras.backend.backend() if NAME == "keras3" else "tensorflow") == BACKEND
