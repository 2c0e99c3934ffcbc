"""The state of an elastic training, and the callbacks that keep it up to date, without changes of the world."""

import numpy
import pytest

from kerases import (
    BATCH,
    JIT,
    KINDS,
    assert_alike_on_all_ranks,
    assert_weights,
    batches,
    fit,
    hvd,
    keras,
    model_of,
    optimizers,
    sgd,
    variables_of,
)

elastic = hvd.elastic


def compiled(kind="new", seed=1, **options):
    model = model_of(seed)
    model.compile(hvd.DistributedOptimizer(optimizers(kind).Adam(0.01), **options), "mse", jit_compile=JIT)
    return model


def all_of(model):
    return [*model.get_weights(), *variables_of(model.optimizer)]


def assert_all(model, expected):
    for own, other in zip(all_of(model), expected):
        numpy.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("kind", KINDS)
def test_sync_restore_and_commit(kind):
    """As in Horovod's test_elastic_state."""
    model = compiled(kind, seed=1 + hvd.rank())
    state = elastic.KerasState(model, batch=20 + hvd.rank(), epoch=10 + hvd.rank())
    state.sync()
    assert (state.batch, state.epoch) == (20, 10)
    assert_alike_on_all_ranks(all_of(model))
    before = all_of(model)

    fit(model, batches(2)[1], BATCH, epochs=1)
    state.batch, state.epoch = 21, 11
    state.restore()
    assert (state.batch, state.epoch) == (20, 10)
    assert_all(model, before)

    fit(model, batches(2)[1], BATCH, epochs=1)
    state.batch, state.epoch = 21, 11
    after = all_of(model)
    state.commit()
    fit(model, batches(2)[1], BATCH, epochs=1)
    state.restore()
    assert (state.batch, state.epoch) == (21, 11)
    assert_all(model, after)
    # The restored value is a copy: further training does not change the commit.
    fit(model, batches(2)[1], BATCH, epochs=1)
    state.restore()
    assert_all(model, after)


def test_an_optimizer_beside_the_model():
    model = model_of()
    optimizer = sgd()
    state = elastic.KerasState(model, optimizer)
    assert state.model is model and state.optimizer is optimizer and len(variables_of(optimizer)) > 2


def test_wrong_types_of_model_optimizer_and_state():
    model = compiled()
    for arguments, text in (
        ([5], "KerasState needs a model of Keras, got int"),
        ([sgd()], r"KerasState needs a model of Keras, got \w+\.\S+\.SGD"),
        ([model, "sgd"], "KerasState needs an optimizer of Keras, got str"),
    ):
        with pytest.raises(TypeError, match=text):
            elastic.KerasState(*arguments)
    with pytest.raises(TypeError, match=r"CommitStateCallback needs a state.*, got \w+\.\S+\.\w+$"):
        elastic.CommitStateCallback(model)
    state = elastic.KerasState(model)
    # As in Horovod: AttributeError.
    with pytest.raises(
        AttributeError, match=r"UpdateEpochStateCallback needs .*`epoch`.* KerasState\(model, epoch=0\)"
    ):
        elastic.UpdateEpochStateCallback(state)
    with pytest.raises(
        AttributeError, match=r"UpdateBatchStateCallback needs .*`batch`.* KerasState\(model, batch=0\)"
    ):
        elastic.UpdateBatchStateCallback(state)


def test_a_model_that_is_not_built():
    with pytest.raises(ValueError, match=r"call model\.build"):
        elastic.KerasState(keras.Sequential([keras.layers.Dense(1)]))


def test_other_ranks_have_another_model():
    model = model_of(units=4 + hvd.rank())
    state = elastic.KerasState(model)
    if hvd.size() == 1:
        return state.sync()
    if hvd.rank() == 0:
        state.sync()
    else:
        with pytest.raises(ValueError, match="all ranks must make the same model"):
            state.sync()


@pytest.mark.only("keras2")
@pytest.mark.parametrize("kind", KINDS)
def test_passes_since_the_last_update_are_dropped(kind):
    model = compiled(kind, backward_passes_per_step=3)
    state = elastic.KerasState(model)
    fit(model, batches(2)[1], BATCH, epochs=1)
    assert int(model.optimizer._accumulation.counter) == 2
    state.restore()
    assert int(model.optimizer._accumulation.counter) == 0


class Commits:
    """A state that counts them."""

    def __init__(self, **values):
        self.commits = []
        vars(self).update(values)

    def commit(self):
        self.commits.append((self.epoch, self.batch))


def stepping(model, state, order, epochs=2, steps=4, **arguments):
    made = {
        "commit": lambda: elastic.CommitStateCallback(state, batches_per_commit=2),
        "batch": lambda: elastic.UpdateBatchStateCallback(state),
        "epoch": lambda: elastic.UpdateEpochStateCallback(state),
    }
    fit(model, batches(steps)[1], BATCH, epochs=epochs, callbacks=[made[name]() for name in order], **arguments)


@pytest.mark.parametrize("order", [["epoch", "batch", "commit"], ["commit", "batch", "epoch"]])
def test_callbacks_in_any_order(order):
    state = Commits(batch=0, epoch=3)
    stepping(compiled(), state, order)
    assert state.commits == [(3, 2), (4, 0), (4, 2), (5, 0)]
    assert (state.batch, state.epoch) == (0, 5)


@pytest.mark.parametrize("initial", [0, 3])
def test_epochs_count_from_where_fit_does(initial):
    """Whether or not the script says initial_epoch=state.epoch."""
    state = Commits(batch=0, epoch=3)
    stepping(compiled(), state, ["epoch"], epochs=initial + 2, initial_epoch=initial)
    assert state.epoch == 5


class Trained(keras.callbacks.Callback):
    """Counts the steps that were trained."""

    def on_train_begin(self, logs=None):
        self.begin = self.steps()

    def steps(self):
        if hasattr(self.model, "jax_state_sync"):
            self.model.jax_state_sync()
        return int(variables_of(self.model.optimizer)[0])

    def on_epoch_end(self, epoch, logs=None):
        self.per_epoch = [*getattr(self, "per_epoch", []), self.steps() - self.begin]


class Stop(Exception):
    pass


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [4, 8])
def test_batches_that_are_done_are_left_out_of_the_first_epoch(kind, steps):
    """The interruption is in the second epoch. With another number of steps, the same share of them is left out."""
    model = compiled(kind)
    state = elastic.KerasState(model, batch=100, epoch=0)  # Horovod's example begins with 100

    class Interrupt(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if state.epoch == 1 and batch == 2:
                raise Stop

        on_batch_end = on_train_batch_end

    def callbacks():
        return [elastic.UpdateBatchStateCallback(state), elastic.UpdateEpochStateCallback(state)]

    with pytest.raises(Stop):
        commits = elastic.CommitStateCallback(state)
        fit(model, batches(4)[1], BATCH, epochs=3, callbacks=[commits, *callbacks(), Interrupt()])
    state.restore()
    assert (state.epoch, state.batch) == (1, 3)
    trained = Trained()
    fit(model, batches(steps)[1], BATCH, epochs=3 - state.epoch, callbacks=[trained, *callbacks()])
    left = steps - 3 * steps // 4
    assert trained.per_epoch == [left, left + steps]
    assert (state.epoch, state.batch) == (3, 0)


@pytest.mark.several_ranks
def test_what_an_interrupted_fit_has_left_is_restored():
    model = compiled()
    state = elastic.KerasState(model, epoch=0)
    before = all_of(model)

    class Interrupt(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            raise Stop

        on_batch_end = on_train_batch_end

    with pytest.raises(Stop):
        fit(model, batches(2)[1], BATCH, callbacks=[Interrupt()])
    state.restore()
    assert_all(model, before)
    fit(model, batches(2)[1], BATCH, epochs=1)
    again = compiled()
    fit(again, batches(2)[1], BATCH, epochs=1)
    assert_weights(model, again.get_weights(), rtol=1e-6, atol=1e-6)


def test_pieces_that_commits_compare():
    model = keras.Sequential([keras.layers.Dense(2), keras.layers.BatchNormalization()])
    model.build((None, 3))
    model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1, momentum=0.9)), "mse", jit_compile=JIT)
    state = elastic.KerasState(model, batch=0)
    own = {name: handler.own_tensors() for name, handler in state._by_state_dict().items()}
    found = list(state._replicated(own))
    assert [tensor.shape for piece, tensor in found if piece.kind == "parameters"] == [(3, 2), (2,), (2,), (2,)]
    momenta = [tensor.shape for piece, tensor in found if piece.kind == "optimizer state" and tensor.ndim > 0]
    assert sorted(momenta) == sorted([(3, 2), (2,), (2,), (2,)])
