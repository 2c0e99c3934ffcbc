"""The callbacks that are not elastic."""

import os

import numpy
import pytest

from kerases import (
    BATCH,
    CLOSE,
    FEATURES,
    JIT,
    KINDS,
    NAME,
    assert_alike_on_all_ranks,
    assert_weights,
    batches,
    fit,
    hvd,
    keras,
    model_of,
    sgd,
    value_of,
    variables_of,
    weights_alone,
)

callbacks = hvd.callbacks


class Record(keras.callbacks.Callback):
    """Records what a callback at this place of the list sees."""

    def on_train_begin(self, logs=None):
        self.rates, self.logs = [], []

    def on_train_batch_end(self, batch, logs=None):
        if hasattr(self.model, "jax_state_sync"):
            self.model.jax_state_sync()
        self.rates.append(float(value_of(self.model.optimizer.learning_rate)))

    on_batch_end = on_train_batch_end  # not in a separate thread

    def on_epoch_end(self, epoch, logs=None):
        self.logs.append(dict(logs))


def compiled(optimizer, seed=1, metrics=None):
    model = model_of(seed)
    model.compile(optimizer, "mse", metrics=metrics, jit_compile=JIT)
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_broadcast_has_all_begin_like_the_root(kind):
    """Ranks that begin with different weights train like one process that begins with the root's."""
    root = hvd.size() - 1
    model = compiled(hvd.DistributedOptimizer(sgd(kind)), seed=1 + root - hvd.rank())
    fit(model, batches()[1], BATCH, callbacks=[callbacks.BroadcastGlobalVariablesCallback(root)])
    assert_weights(model, weights_alone(kind))
    assert_alike_on_all_ranks([*model.get_weights(), *variables_of(model.optimizer)])


@pytest.mark.parametrize("kind", KINDS)
def test_weights_and_slots_are_the_roots_after_the_first_batch(kind):
    model = keras.Sequential([keras.layers.Dense(1)])  # not built before that
    model.compile(hvd.DistributedOptimizer(sgd(kind, rate=0.1 * (hvd.rank() + 1))), "mse", jit_compile=JIT)
    keras.utils.set_random_seed(hvd.rank())
    inputs, targets = batches(1)[1]
    fit(model, (inputs, targets), BATCH, epochs=1, callbacks=[callbacks.BroadcastGlobalVariablesCallback(0)])
    assert_alike_on_all_ranks([*model.get_weights(), *variables_of(model.optimizer)])
    assert float(value_of(model.optimizer.learning_rate)) == pytest.approx(0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_broadcast_leaves_each_rank_the_gradients_that_it_accumulates(kind):
    """The broadcast comes after the first batch, in the midst of the first two passes."""
    optimizer = hvd.DistributedOptimizer(sgd(kind), backward_passes_per_step=2, average_aggregated_gradients=True)
    model = compiled(optimizer)
    fit(model, batches()[1], BATCH, callbacks=[callbacks.BroadcastGlobalVariablesCallback(0)])
    assert_weights(model, weights_alone(kind, joined=2))


@pytest.mark.several_ranks
@pytest.mark.parametrize("kind", KINDS)
def test_learning_rates_that_differ_after_an_epoch_are_an_error(kind):
    class Decides(keras.callbacks.Callback):
        """Records what ReduceLROnPlateau does with the metrics of a rank."""

        def on_epoch_end(self, epoch, logs=None):
            if epoch == 1 and hvd.rank() == 1:
                self.model.optimizer.learning_rate = 0.05

    model = compiled(hvd.DistributedOptimizer(sgd(kind, rate=0.1)))
    listed = [callbacks.BroadcastGlobalVariablesCallback(0), Decides()]
    with pytest.raises(
        ValueError, match=r"learning rates, .*: rank 0 0\.1, rank 1 0\.05\. .*MetricAverageCallback\(\) before it$"
    ):
        fit(model, batches()[1], BATCH, epochs=3, callbacks=listed)


def test_local_variables_are_not_broadcast():
    model = compiled(hvd.DistributedOptimizer(sgd(rate=0.0)), seed=1 + hvd.rank())
    own = model.trainable_variables[0]
    before = value_of(own).copy()
    callback = callbacks.BroadcastGlobalVariablesCallback(0, local_variables=own)
    fit(model, batches(1)[1], BATCH, epochs=1, callbacks=[callback])
    numpy.testing.assert_array_equal(value_of(own), before)
    assert_alike_on_all_ranks(model.get_weights()[1:])
    with pytest.raises(ValueError, match="local_variables must hold variables only"):
        callbacks.BroadcastGlobalVariablesCallback(0, local_variables=["kernel"])


def test_metrics_are_averaged_for_those_behind():
    """The weights are the numbers of samples, which differ between ranks."""
    steps = 1 + hvd.rank()
    random = numpy.random.RandomState(hvd.rank())
    inputs = random.randn(steps * BATCH, FEATURES).astype("float32")
    targets = inputs[:, :1] + hvd.rank()
    model = compiled(sgd(rate=0.0), metrics=["mae"])  # not distributed: ranks have different numbers of steps
    before, behind = Record(), Record()
    fit(
        model,
        (inputs, targets),
        BATCH,
        epochs=2,
        callbacks=[before, callbacks.MetricAverageCallback(), behind],
        validation_data=(inputs[:BATCH], targets[:BATCH]),
    )
    for own, averaged in zip(before.logs, behind.logs):
        assert set(averaged) == set(own) == {"loss", "mae", "val_loss", "val_mae"}
        for name, value in own.items():
            weight = BATCH if name.startswith("val_") else steps * BATCH
            total = float(hvd.allreduce(numpy.float64(weight * value), op=hvd.Sum))
            weights = float(hvd.allreduce(numpy.float64(weight), op=hvd.Sum))
            assert averaged[name] == pytest.approx(total / weights, rel=1e-6)
    assert model.history.history["loss"] == [logs["loss"] for logs in behind.logs]


@pytest.mark.parametrize("of_rank_0, of_others", [("a", "b"), ("a", None)])
def test_different_metrics_are_an_error_that_names_them(of_rank_0, of_others):
    average = callbacks.MetricAverageCallback()
    average.set_model(compiled(sgd()))
    name = of_rank_0 if hvd.rank() == 0 else of_others
    logs = {"loss": 1.0, **({name: 2.0} if name else {})}
    if hvd.size() == 1:
        return average.on_epoch_end(0, logs)
    theirs = sorted(filter(None, ["loss", of_others]))
    with pytest.raises(ValueError) as caught:
        average.on_epoch_end(0, logs)
    assert f"the ranks have different metrics: rank 0 ['a', 'loss'], rank 1 {theirs};" in str(caught.value)
    average.on_epoch_end(1, None)  # no metrics, on all ranks


@pytest.mark.parametrize("first", ["EarlyStopping", "ReduceLROnPlateau"])
def test_callbacks_that_decide_must_stand_behind_the_average(first):
    deciding = getattr(keras.callbacks, first)(monitor="loss")
    model = compiled(sgd())
    with pytest.raises(ValueError, match=f"MetricAverageCallback must stand before {first}") as caught:
        fit(model, batches(1)[1], BATCH, epochs=1, callbacks=[deciding, callbacks.MetricAverageCallback()])
    assert "\n" not in str(caught.value)
    fit(model, batches(1)[1], BATCH, epochs=1, callbacks=[callbacks.MetricAverageCallback(), deciding])


def test_callbacks_that_record_should_stand_behind_the_average(tmp_path):
    recording = keras.callbacks.CSVLogger(str(tmp_path / "log.csv"))
    with pytest.warns(UserWarning, match="MetricAverageCallback must stand before CSVLogger"):
        order = [recording, callbacks.MetricAverageCallback()]
        fit(compiled(sgd()), batches(1)[1], BATCH, epochs=1, callbacks=order)


@pytest.mark.parametrize("kind", KINDS)
def test_warmup_is_that_of_the_paper(kind):
    rate, epochs, steps = 0.4, 3, 4
    model = compiled(hvd.DistributedOptimizer(sgd(kind, rate=rate)))
    record = Record()
    warmup = callbacks.LearningRateWarmupCallback(initial_lr=rate, warmup_epochs=2)
    fit(model, batches(steps)[1], BATCH, epochs=epochs, callbacks=[warmup, record])
    size = hvd.size()
    expected = [rate / size * ((size - 1) / 2 * (step + 1) / steps + 1) for step in range(2 * steps)]
    numpy.testing.assert_allclose(record.rates, expected + [rate] * steps, rtol=1e-6)
    numpy.testing.assert_allclose([logs["lr"] for logs in record.logs], record.rates[steps - 1 :: steps])


@pytest.mark.parametrize("kind", KINDS)
def test_schedules_are_horovods(kind):
    rate, steps = 0.4, 2
    model = compiled(hvd.DistributedOptimizer(sgd(kind, rate=rate)))
    record = Record()
    schedules = [
        callbacks.LearningRateScheduleCallback(initial_lr=rate, multiplier=0.5, start_epoch=1, end_epoch=4),
        callbacks.LearningRateScheduleCallback(
            initial_lr=rate, multiplier=lambda epoch: epoch, start_epoch=4, end_epoch=5
        ),
        callbacks.LearningRateScheduleCallback(
            initial_lr=rate, multiplier=lambda epoch: 1 / epoch, start_epoch=5, staircase=False, steps_per_epoch=steps
        ),
    ]
    fit(model, batches(steps)[1], BATCH, epochs=6, callbacks=[*schedules, record])
    expected = [1, 1, 1, 1, 0.5, 0.5, 0.25, 0.25, 4, 4, 1 / 5, 1 / 5.5]
    numpy.testing.assert_allclose(record.rates, rate * numpy.array(expected), rtol=1e-6)


@pytest.mark.parametrize("correction", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_momentum_follows_a_changed_rate(kind, correction):
    """Against the formula: the momentum of a step is multiplied by what the rate is multiplied by."""
    (inputs, targets), _ = batches(4)
    inputs, targets = inputs[: 4 * BATCH], targets[: 4 * BATCH]
    rates = [0.1, 0.2, 0.05, 0.05]

    model = compiled(sgd(kind, rate=rates[0]))
    schedule = callbacks.LearningRateScheduleCallback(
        initial_lr=1.0,
        multiplier=lambda epoch: rates[round(epoch * 4)],
        staircase=False,
        momentum_correction=correction,
        steps_per_epoch=4,
    )
    fit(model, (inputs, targets), BATCH, epochs=1, callbacks=[schedule])

    expected = Reference(model_of())
    for step, rate in enumerate(rates):
        part = slice(BATCH * step, BATCH * (step + 1))
        factor = rate / rates[step - 1] if step and correction else 1
        expected.step(inputs[part], targets[part], rate, 0.9 * factor)
    assert_weights(model, expected.weights, **CLOSE)
    if kind == "legacy":
        assert float(value_of(model.optimizer.momentum)) == pytest.approx(0.9)


class Reference:
    """SGD with momentum of numpy, for :func:`kerases.model_of`."""

    def __init__(self, model):
        self.weights = [weight.astype("float64") for weight in model.get_weights()]
        self._moved = [0.0] * len(self.weights)

    def step(self, inputs, targets, rate, momentum):
        kernel, bias, out, last = self.weights
        hidden = numpy.tanh(inputs @ kernel + bias)
        error = 2 * (hidden @ out + last - targets) / len(inputs)
        back = error @ out.T * (1 - hidden**2)
        gradients = [inputs.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)]
        self._moved = [momentum * old - rate * new for old, new in zip(self._moved, gradients)]
        self.weights = [weight + moved for weight, moved in zip(self.weights, self._moved)]


def test_a_rate_that_is_a_schedule_is_refused():
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)
    model = compiled(hvd.DistributedOptimizer(sgd(rate=schedule)))
    warmup = callbacks.LearningRateWarmupCallback(initial_lr=0.1)
    with pytest.raises(
        ValueError, match="LearningRateWarmupCallback sets the learning rate, but the optimizer was made"
    ):
        fit(model, batches(1)[1], BATCH, epochs=1, callbacks=[warmup])


def test_what_the_schedules_need():
    with pytest.raises(ValueError, match="Parameter `initial_lr` is required"):
        callbacks.LearningRateScheduleCallback(None, 0.1)
    with pytest.raises(ValueError, match="multiplier='x' is neither a number nor a function of the epoch"):
        callbacks.LearningRateScheduleCallback(0.1, "x")
    warmup = callbacks.LearningRateWarmupCallback(0.1)
    warmup.set_params({})
    with pytest.raises(ValueError, match=r"LearningRateWarmupCallback: .* pass steps_per_epoch"):
        warmup.on_train_begin()


def test_best_model_checkpoint(tmp_path):
    best = callbacks.BestModelCheckpoint(monitor="loss")
    model = compiled(sgd())
    with pytest.raises(ValueError, match="BestModelCheckpoint has no filepath"):
        fit(model, batches(1)[1], BATCH, epochs=1, callbacks=[best])
    best.filepath = str(tmp_path / ("best.h5" if NAME == "keras2" else "best.keras"))
    fit(model, batches(2)[1], BATCH, epochs=2, callbacks=[callbacks.MetricAverageCallback(), best])
    assert os.path.exists(best.filepath)


def test_arguments_of_best_model_checkpoint_have_horovods_order():
    """horovod.keras has no save_weights_only between verbose and mode, horovod.tensorflow.keras has."""
    between = [False] if NAME == "keras2" else []
    best = callbacks.BestModelCheckpoint("loss", 1, *between, "max", 7)
    assert (best.monitor, best.verbose, best.save_freq) == ("loss", 1, 7) and not best.save_weights_only


def test_they_are_callbacks_of_this_keras():
    for name in ("BestModelCheckpoint", "BroadcastGlobalVariablesCallback", "MetricAverageCallback"):
        own = getattr(callbacks, name)
        assert issubclass(own, keras.callbacks.Callback) and own.__module__ == callbacks.__name__ and own.__doc__
    assert NAME in ("keras2", "keras3")
