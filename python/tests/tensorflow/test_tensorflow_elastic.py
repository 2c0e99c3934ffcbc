"""States of an elastic training with TensorFlow, and the loop around it. On any number of ranks; jobs whose
workers come and go are in tests/frameworks."""

import contextlib

import numpy
import pytest
import tensorflow as tf

import horovod.tensorflow as hvd
from horovod.common.exceptions import HorovodInternalError, HorovodRequestError
from tf_modes import assert_same, mine, reduced

v1 = tf.compat.v1
elastic = hvd.elastic


class Eager:
    """Variables and their values, as a training without graphs has them."""

    session = None

    def variable(self, value):
        return tf.Variable(value)

    def initialize(self):
        pass

    def values(self, variables):
        return [variable.numpy().copy() for variable in variables]

    def assign(self, variables, values):
        for variable, value in zip(variables, values):
            variable.assign(value)


class InSession(Eager):
    def __init__(self, session, use_resource):
        self.session = session
        self.use_resource = use_resource

    def variable(self, value):
        return v1.Variable(value, use_resource=self.use_resource)

    def initialize(self):
        self.session.run(v1.global_variables_initializer())

    def values(self, variables):
        return self.session.run(variables)

    def assign(self, variables, values):
        for variable, value in zip(variables, values):
            variable.load(value, self.session)


@contextlib.contextmanager
def world_of(kind):
    if kind == "eager":
        yield Eager()
        return
    with tf.Graph().as_default(), v1.Session() as session:
        yield InSession(session, kind == "resources")


KINDS = ["eager", "resources", "references"]


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_sync_restore_and_commit(kind, given):
    """Of variables that are named, or of all that the graph has."""
    with world_of(kind) as world:
        value = 1.0 if hvd.rank() == 0 else 2.0
        variables = [world.variable(numpy.full(shape, value)) for shape in ((2, 2), (2,))]
        variables.append(world.variable(numpy.int64(hvd.rank())))
        others = [numpy.array([[1.0, 2.0], [3.0, 4.0]]), numpy.zeros(2), numpy.int64(7)]
        world.initialize()
        if kind == "eager":
            state = elastic.TensorFlowState(variables, batch=20 + hvd.rank(), epoch=10 + hvd.rank())
        else:
            which = dict(variables=variables, session=world.session) if given else {}
            state = elastic.TensorFlowState(**which, batch=20 + hvd.rank(), epoch=10 + hvd.rank())
        state.sync()
        roots = [numpy.ones((2, 2)), numpy.ones(2), numpy.int64(0)]
        assert_same(world.values(variables), roots)
        assert (state.batch, state.epoch) == (20, 10)
        assert list(state.variables) == variables

        world.assign(variables, others)
        state.batch, state.epoch = 21, 11
        state.restore()
        assert_same(world.values(variables), roots)
        assert (state.batch, state.epoch) == (20, 10)

        world.assign(variables, others)
        state.batch, state.epoch = 21, 11
        state.commit()
        world.assign(variables, roots)
        state.batch = 22
        state.restore()
        assert_same(world.values(variables), others)
        assert (state.batch, state.epoch) == (21, 11)


@pytest.mark.parametrize("kind", KINDS)
def test_variables_made_from_one_initial_tensor_are_restored_each(kind):
    """As a network and its target network."""
    with world_of(kind) as world:
        initial = tf.random.normal([3])
        variables = [world.variable(initial) for _ in range(3)]
        world.initialize()
        values = [numpy.float32([i, i + 1, i + 2]) for i in range(3)]
        world.assign(variables, values)
        which = dict(session=world.session) if world.session else {}
        state = elastic.TensorFlowState(variables=variables, **which)
        world.assign(variables, values[::-1])
        state.restore()
        assert_same(world.values(variables), values)
        world.assign(variables, [value + hvd.rank() for value in values])
        state.sync()
        assert_same(world.values(variables), values)


def test_what_was_saved_is_a_copy():
    """TensorFlow may update the memory of the variables in place."""
    variable = tf.Variable(tf.zeros(1000))
    state = elastic.TensorFlowState([variable])
    for _ in range(3):
        variable.assign_add(tf.ones(1000))
        state.restore()
        assert_same(variable.numpy(), numpy.zeros(1000, "float32"))


def keras_training(units=3):
    tf.keras.utils.set_random_seed(1 + hvd.rank())
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(units)])
    return model, tf.keras.optimizers.Adam(0.1)


def all_of(model, optimizer):
    variables = optimizer.variables() if callable(optimizer.variables) else optimizer.variables
    return [numpy.asarray(each).copy() for each in (*model.variables, *variables)]


def step(model, optimizer):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(tf.ones((4, 2))) ** 2)
    tape = hvd.DistributedGradientTape(tape)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))


@pytest.mark.parametrize("compiled", [False, True])
def test_models_of_keras(compiled):
    model, optimizer = keras_training()
    if compiled:
        model.compile(optimizer, "mse")
        state = elastic.TensorFlowKerasState(model, batch=hvd.rank(), epoch=0)
    else:
        state = elastic.TensorFlowKerasState(model, optimizer, batch=hvd.rank(), epoch=0)
    assert state.model is model and state.optimizer is optimizer
    state.sync()
    everything = all_of(model, optimizer)
    assert state.batch == 0
    for of_rank in hvd.allgather_object(everything):
        assert_same(of_rank, everything)
    for _ in range(2):
        step(model, optimizer)
        state.batch += 1
    after = all_of(model, optimizer)
    assert any((one != other).any() for one, other in zip(everything, after))
    state.restore()
    assert_same(all_of(model, optimizer), everything)
    for _ in range(2):
        step(model, optimizer)
    state.commit()
    step(model, optimizer)
    state.restore()
    assert_same(all_of(model, optimizer), after, 1e-6)


def test_the_learning_rate_of_an_optimizer():
    model, optimizer = keras_training()
    optimizer.learning_rate.assign(0.1 * (1 + hvd.rank()))
    state = elastic.TensorFlowKerasState(model, optimizer)
    state.sync()
    assert_same(numpy.asarray(optimizer.learning_rate), numpy.float32(0.1), 1e-6)
    optimizer.learning_rate.assign(7.0)
    state.restore()
    assert_same(numpy.asarray(optimizer.learning_rate), numpy.float32(0.1), 1e-6)


@pytest.mark.skipif(
    not hasattr(tf.keras.optimizers.Adam, "aggregate_gradients"), reason="Keras 3 keeps its sums itself"
)
def test_passes_of_a_failed_update_are_dropped():
    """Otherwise no later pass would be the last one of an update."""
    model, optimizer = keras_training()
    optimizer = hvd.DistributedOptimizer(optimizer, backward_passes_per_step=2)
    state = elastic.TensorFlowKerasState(model, optimizer)
    optimizer._accumulation.counter.assign(2)  # what is left if the reduction has failed
    state.restore()
    assert int(optimizer._accumulation.counter) == 0
    optimizer._accumulation.counter.assign(2)
    state.sync()
    assert int(optimizer._accumulation.counter) == 0


def test_passes_of_a_session_are_dropped():
    with tf.Graph().as_default(), v1.Session() as session:
        variable = v1.get_variable("variable", initializer=[0.0])
        optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(1.0), backward_passes_per_step=2)
        update = optimizer.minimize(variable + 5.0)
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        state = elastic.TensorFlowState(session=session)
        session.run(update)
        for again in (state.restore, state.sync):
            again()
            session.run(update)
            assert_same(session.run(variable), numpy.float32([0.0]))
        session.run(update)
        assert_same(session.run(variable), numpy.float32([-2.0]))


def test_a_model_that_is_not_built():
    with pytest.raises(ValueError, match=r"call model\.build"):
        elastic.TensorFlowKerasState(tf.keras.Sequential([tf.keras.layers.Dense(1)]), tf.keras.optimizers.SGD())


def test_wrong_types_of_model_and_optimizer():
    with pytest.raises(TypeError, match="TensorFlowKerasState needs a model of Keras, got int"):
        elastic.TensorFlowKerasState(5)
    with pytest.raises(TypeError, match="TensorFlowKerasState needs an optimizer of Keras, got str"):
        elastic.TensorFlowKerasState(tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)]), "sgd")


def test_run_continues_from_the_last_commit_in_a_new_world():
    """The function was traced before, and is not traced again."""
    variable, traces, seen = tf.Variable(tf.zeros(2)), [], []
    state = elastic.TensorFlowState([variable], batch=0)
    own = tf.constant(mine((2,)))

    @tf.function
    def train_step():
        traces.append(1)
        variable.assign_add(hvd.allreduce(own, op=hvd.Sum, name="own"))

    @elastic.run
    def train(state, steps):
        seen.append(state.batch)
        while state.batch < steps:
            train_step()
            state.batch += 1
            if state.batch == 2:
                state.commit()
            if state.batch == 4 and len(seen) == 1:
                raise HorovodInternalError("as of a rank that is lost")
        return "done"

    assert train(state, 5) == "done"
    assert seen == [0, 2] and len(traces) == 1
    assert_same(variable.numpy(), 5 * reduced("Sum", (2,)), 1e-6)


def test_what_tensorflow_raises_is_not_lost():
    """Horovod's run() swallows errors of TensorFlow that are not of its operations."""

    @elastic.run
    def train(state):
        raise tf.errors.UnknownError(None, None, "of something else")

    with pytest.raises(tf.errors.UnknownError, match="of something else"):
        train(elastic.TensorFlowState([tf.Variable(1.0)]))


@pytest.mark.several_ranks
def test_a_mismatch_is_not_tried_again():
    calls = []

    @elastic.run
    def train(state):
        calls.append(1)
        tf.function(lambda: hvd.allreduce(tf.ones(1 + hvd.rank()), name="mismatch"))()

    with pytest.raises((HorovodRequestError, tf.errors.FailedPreconditionError), match="Mismatched"):
        train(elastic.TensorFlowState([tf.Variable(1.0)]))
    assert len(calls) == 1


def test_pieces_that_commits_compare():
    weights, mean = tf.Variable([1.0, 2.0]), tf.Variable([0.0, 0.0], trainable=False)
    state = elastic.TensorFlowState([weights, mean], random=tf.random.Generator.from_seed(1))
    own = {name: handler.own_tensors() for name, handler in state._by_state_dict().items()}
    assert [(piece.value, piece.kind) for piece, _ in state._replicated(own)] == [("variables", "parameters")]
