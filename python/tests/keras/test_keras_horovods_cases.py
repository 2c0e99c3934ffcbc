"""Cases of Horovod's own tests that no other file here has; python/tests/data/horovods_cases.md says where all
of them are. On any number of ranks."""

import os

import numpy
import pytest

from kerases import (
    BATCH,
    KINDS,
    NAME,
    assert_alike_on_all_ranks,
    batches,
    fit,
    hvd,
    keras,
    model_of,
    optimizers,
    sgd,
    value_of,
    variables_of,
)

callbacks = hvd.callbacks


def compiled(optimizer, seed=1):
    model = model_of(seed)
    model.compile(optimizer, keras.losses.MeanSquaredError(), jit_compile=False)
    return model


class Rates(keras.callbacks.Callback):
    """The rate at the end of each epoch."""

    def on_train_begin(self, logs=None):
        self.seen = []

    def on_epoch_end(self, epoch, logs=None):
        self.seen.append(float(value_of(self.model.optimizer.learning_rate)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_warmup_and_schedules_one_after_another(kind):
    rate = 0.01 * hvd.size()
    rates = Rates()

    def schedule(multiplier, first):
        return callbacks.LearningRateScheduleCallback(
            initial_lr=rate, multiplier=multiplier, start_epoch=first, end_epoch=first + 2
        )

    model = compiled(hvd.DistributedOptimizer(optimizers(kind).Adam()), seed=1 + hvd.rank())
    order = [
        callbacks.BroadcastGlobalVariablesCallback(0),
        callbacks.MetricAverageCallback(),
        callbacks.LearningRateWarmupCallback(initial_lr=rate, warmup_epochs=2),
        schedule(0.1, 2),
        schedule(0.01, 4),
        schedule(lambda epoch: epoch, 6),
        rates,
    ]
    history = fit(model, batches(3)[1], BATCH, epochs=8, callbacks=order).history
    warm = [rate / hvd.size() * ((hvd.size() - 1) * epoch / 2 + 1) for epoch in (1, 2)]
    # A number is multiplied once more with each epoch, a function gives the multiplier.
    expected = [*warm, *[rate * multiplier for multiplier in (1, 0.1, 1, 0.01, 6, 7)]]
    numpy.testing.assert_allclose(rates.seen, expected, 1e-5)
    assert len(history["loss"]) == 8
    assert_alike_on_all_ranks([history["loss"], *model.get_weights()])


def test_variables_of_layers_that_are_not_trained_are_broadcast():
    """With a layer that each rank has for itself."""
    keras.utils.set_random_seed(1)
    root = hvd.size() - 1

    def dense():
        start = keras.initializers.Constant(hvd.rank())
        return keras.layers.Dense(3, kernel_initializer=start, bias_initializer=start, trainable=False)

    model = keras.Sequential([keras.layers.InputLayer((3,)), dense(), dense(), dense()])
    model.compile(loss="mse", jit_compile=False)
    own = model.layers[-3].variables
    callback = callbacks.BroadcastGlobalVariablesCallback(root_rank=root, local_variables=list(own))
    model.fit(numpy.ones((4, 3)), numpy.ones((4, 3)), verbose=0, callbacks=[callback])
    for layer, expected in zip(model.layers[-3:], (hvd.rank(), root, root)):
        for value in layer.get_weights():
            numpy.testing.assert_array_equal(value, numpy.full(value.shape, float(expected)))


@pytest.fixture
def folder(tmp_path):
    """The same on all ranks."""
    from horovod.common.objects import broadcast_object

    return broadcast_object(str(tmp_path), 0)


@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file")
@pytest.mark.parametrize("kind", KINDS)
def test_rank_0_loads_a_model_and_the_others_begin(kind, folder):
    """The others' optimizers have no slots yet."""
    # Keras 2.13 itself can't load a legacy optimizer from the newer format.
    path = os.path.join(folder, "model.h5" if kind == "legacy" else "model.keras")
    model = compiled(hvd.DistributedOptimizer(sgd(kind)))
    fit(model, batches(2)[1], BATCH, epochs=1)
    if hvd.rank() == 0:
        model.save(path)
        model = hvd.load_model(path)
    else:
        model = compiled(hvd.DistributedOptimizer(sgd(kind, rate=0.5)), seed=2)
    fit(model, batches(1)[1], BATCH, epochs=1, callbacks=[callbacks.BroadcastGlobalVariablesCallback(0)])
    slots = variables_of(model.optimizer)
    assert len(slots) > 4 - (kind == "legacy")
    assert_alike_on_all_ranks([*model.get_weights(), *slots, value_of(model.optimizer.learning_rate)])
    fit(model, batches(1)[1], BATCH, epochs=1)
    assert_alike_on_all_ranks([*model.get_weights(), *variables_of(model.optimizer)])


@pytest.mark.only("keras2")
@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file")
@pytest.mark.parametrize("kind", KINDS)
def test_a_function_that_makes_the_distributed_optimizer_of_a_loaded_model(kind, folder):
    class Own(optimizers(kind).RMSprop):
        pass

    model = compiled(hvd.DistributedOptimizer(Own(learning_rate=0.25)))
    fit(model, batches(1)[1], BATCH, epochs=1)
    path = os.path.join(folder, "model.h5")
    if hvd.rank() == 0:
        model.save(path)
    hvd.allreduce(0.0)  # it is there
    make = {"Own": lambda **config: hvd.DistributedOptimizer(Own(**config))}
    optimizer = hvd.load_model(path, custom_objects=make).optimizer
    assert type(optimizer).__name__ == "Own" and hasattr(optimizer, "register_local_var")
    assert float(value_of(optimizer.learning_rate)) == 0.25
    for own, other in zip(variables_of(optimizer), variables_of(model.optimizer)):
        numpy.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("compiles", [False, True])
def test_state_of_a_model_that_is_built_by_hand(compiles):
    model = keras.Sequential([keras.layers.Dense(2, activation="softmax")])
    model.build((2, 2))
    start, other = 1.0 if hvd.rank() == 0 else 2.0, [numpy.float32([[1, 2], [3, 4]]), numpy.zeros(2, "float32")]
    model.set_weights([numpy.full((2, 2), start, "float32"), numpy.full(2, start, "float32")])
    optimizer = keras.optimizers.Adam(0.001 * hvd.size())
    if compiles:
        model.compile(optimizer, "mse")
    which = {} if compiles else {"optimizer": optimizer}
    state = hvd.elastic.KerasState(model, **which, batch=20 + hvd.rank(), epoch=10 + hvd.rank())
    state.sync()
    ones = [numpy.ones((2, 2)), numpy.ones(2)]
    for commits, expected, count in ((False, ones, 20), (True, other, 21)):
        model.set_weights(other)
        state.batch, state.epoch = 21, 11
        if commits:
            state.commit()
        state.restore()
        assert (state.batch, state.epoch) == (count, count - 10)
        for value, wanted in zip(state.model.get_weights(), expected):
            numpy.testing.assert_array_equal(value, wanted)


def adding(kind):
    """An optimizer that adds the gradient to a variable, as those of Horovod's tests do."""
    base = optimizers(kind).Optimizer

    class Adding(base):
        def __init__(self, name="Adding", **options):
            super().__init__(name=name, **options)
            if kind == "new":
                self._learning_rate = self._build_learning_rate(0.1)

        def update_step(self, gradient, variable):
            variable.assign_add(gradient)

        def _resource_apply_dense(self, grad, var, apply_state=None):
            return var.assign_add(grad)

        def _create_slots(self, var_list):
            pass

        def build(self, var_list):
            if kind == "new":
                super().build(var_list)

        def get_gradients(self, loss, params):
            import tensorflow as tf

            return [tf.constant([float(hvd.rank())]) for _ in params]

        def get_config(self):
            return {"name": self._name if kind == "legacy" else self.name}

    return Adding()


@pytest.mark.only("keras2")
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_that_the_optimizer_itself_makes_are_reduced_once(kind, monkeypatch):
    """By the ranks of a process set; on the others the optimizer is a local one. With Sum, each further time would show."""
    import tensorflow as tf

    monkeypatch.setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1")
    evens = list(range(0, hvd.size(), 2))
    members = hvd.add_process_set(evens) if hvd.size() > 1 else hvd.global_process_set
    for op, divisor in ((hvd.Average, len(evens)), (hvd.Sum, 1)):
        optimizer = hvd.DistributedOptimizer(adding(kind), op=op, process_set=members)
        value = tf.Variable([0.0])
        (gradient,) = optimizer.get_gradients(None, [value])
        optimizer.apply_gradients([(gradient, value)])
        numpy.testing.assert_allclose(value, [sum(evens) / divisor if hvd.rank() in evens else hvd.rank()])
    hvd.remove_process_set(members)


@pytest.mark.only("keras2")
@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_computed_by_a_tape_that_is_given(kind, count):
    import tensorflow as tf

    start = keras.initializers.Constant(hvd.rank() + 1.0)
    layers = [keras.layers.Dense(2, kernel_initializer=start), keras.layers.Dense(3, kernel_initializer=start)]
    model = keras.Sequential([keras.layers.InputLayer((3,)), *layers])
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_mean(model(tf.ones((1, 3)), training=True) ** 2)
    weights = model.trainable_weights
    own = tape.gradient(loss, weights)
    optimizer = hvd.PartialDistributedOptimizer(
        optimizers(kind).Adam(), sparse_as_dense=True, local_layers=layers[:count]
    )
    compute = optimizer.compute_gradients if kind == "new" else optimizer._compute_gradients
    for place, (grad, variable) in enumerate(compute(loss, weights, tape=tape)):
        assert variable is weights[place]
        if place < 2 * count:
            numpy.testing.assert_allclose(grad, own[place] / hvd.size(), rtol=1e-6)
        else:
            total = numpy.asarray(hvd.allreduce(own[place], op=hvd.Average))
            numpy.testing.assert_allclose(grad, total, rtol=1e-6)


@pytest.mark.only("keras2")
@pytest.mark.parametrize("averages", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_accumulation_with_local_variables(kind, averages):
    """Half of the variables are local; gradients of some are tf.IndexedSlices."""
    import tensorflow as tf

    passes, size, own = 4, hvd.size(), hvd.rank() + 1.0
    optimizer = hvd.DistributedOptimizer(
        optimizers(kind).SGD(1.0),
        backward_passes_per_step=passes,
        average_aggregated_gradients=averages,
        sparse_as_dense=True,
    )
    _ = optimizer.iterations
    xs = [tf.Variable([0.0]) for _ in range(4)]
    ys = [tf.Variable([1.0, 2.0]) for _ in range(4)]
    for local in (*xs[:2], *ys[:2]):
        optimizer.register_local_var(local)
    compute = optimizer.compute_gradients if kind == "new" else optimizer._compute_gradients

    @tf.function
    def step():
        pairs = compute(lambda: [x - own * tf.gather(y, [0]) for x, y in zip(xs, ys)], [*xs, *ys])
        if kind == "new":
            optimizer.build([*xs, *ys])
        optimizer.apply_gradients(pairs, experimental_aggregate_gradients=False)

    for done in range(1, 11):
        step()
        moved = done // passes * (1 if averages else passes)
        for place in range(4):
            x_grad, y_grad = (1 / size, own / size) if place < 2 else (1, (size + 1) / 2)
            numpy.testing.assert_allclose(xs[place], [-moved * x_grad], rtol=1e-5)
            numpy.testing.assert_allclose(ys[place], [1 + moved * y_grad, 2], rtol=1e-5)
        assert int(optimizer.iterations) == done


def test_embeddings_with_sparse_as_dense_and_passes():
    """Batches one by one; of three with two passes a step, one is left. Keras 3 counts updates, Keras 2 passes."""
    model = keras.Sequential([keras.layers.Embedding(100, 4)])
    optimizer = hvd.DistributedOptimizer(
        keras.optimizers.RMSprop(0.01), sparse_as_dense=True, backward_passes_per_step=2
    )
    model.compile(optimizer, "mse", jit_compile=False)
    random = numpy.random.RandomState(hvd.rank())
    words, targets = random.randint(100, size=(8, 10)), random.rand(8, 10, 4)
    for _ in range(3):
        model.train_on_batch(words, targets)
    assert int(value_of(model.optimizer.iterations)) == (3 if NAME == "keras2" else 1)
    if NAME == "keras2":
        assert int(model.optimizer._accumulation.counter) == 1
