"""Distributed optimizers of tf.compat.v1, in graphs and eagerly. On any number of ranks."""

import contextlib
import math

import numpy
import pytest
import tensorflow as tf

import horovod.tensorflow as hvd
from tf_modes import added, assert_same, own_set

v1 = tf.compat.v1


@contextlib.contextmanager
def graph():
    """A session of a new graph."""
    with tf.Graph().as_default(), v1.Session() as session:
        yield session


def initialize(session):
    session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])


def trained(make, steps=6, use_resource=True, **arguments):
    """Returns two variables after training; each rank's gradients are those of its own data."""
    with graph() as session:
        weights = v1.get_variable("weights", initializer=tf.ones((3, 1)), use_resource=use_resource)
        bias = v1.get_variable("bias", initializer=tf.zeros(1), use_resource=use_resource)
        batch, target = v1.placeholder(tf.float32, (None, 3)), v1.placeholder(tf.float32, (None, 1))
        loss = tf.reduce_mean((batch @ weights + bias - target) ** 2)
        optimizer = make(v1.train.MomentumOptimizer(0.1, 0.9))
        global_step = v1.train.get_or_create_global_step()
        update = optimizer.minimize(loss, global_step=global_step, **arguments)
        initialize(session)
        seen = []
        for feed in batches(steps):
            session.run(update, dict(zip((batch, target), feed)))
            seen.append(int(session.run(global_step)))
        assert seen == list(range(1, steps + 1))
        assert set(optimizer.get_slot_names()) >= {"momentum"} and optimizer.get_slot(bias, "momentum") is not None
        assert len(optimizer.variables()) >= 2
        return session.run([weights, bias])


def batches(steps, joined=False):
    data = numpy.random.RandomState(0).randn(steps, 4 * hvd.size(), 3).astype("float32")
    wanted = data @ numpy.float32([[1.0], [-2.0], [0.5]]) + 0.25
    mine = slice(None) if joined else slice(hvd.rank(), None, hvd.size())
    return [(batch[mine], target[mine]) for batch, target in zip(data, wanted)]


def alone(steps=6, passes=1, divide=True):
    """The same in numpy, on the joined batches; of `passes` gradients the sum or the mean counts."""
    weights, bias = numpy.ones((3, 1), "float64"), numpy.zeros(1, "float64")
    momenta, sums = [numpy.zeros((3, 1)), numpy.zeros(1)], [numpy.zeros((3, 1)), numpy.zeros(1)]
    for number, (batch, target) in enumerate(batches(steps, joined=True)):
        error = 2 * (batch @ weights + bias - target) / len(batch)
        for total, grad in zip(sums, (batch.T @ error, error.sum(0))):
            total += grad
        if (number + 1) % passes == 0:
            for variable, momentum, total in zip((weights, bias), momenta, sums):
                momentum *= 0.9
                momentum += total / (passes if divide else 1)
                variable -= 0.1 * momentum
                total[...] = 0
    return [weights.astype("float32"), bias.astype("float32")]


WAYS = {
    "default": dict(),
    "named": dict(name="Mine", use_locking=True),
    "groups": dict(groups=1),
    "compressed": dict(compression=hvd.Compression.fp16),
    "predivided": dict(gradient_predivide_factor=2.0),
    "placed": dict(device_dense="/cpu:0"),
}


@pytest.mark.parametrize("use_resource", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_training_equals_one_process_on_the_joined_batch(way, use_resource):
    found = trained(lambda optimizer: hvd.DistributedOptimizer(optimizer, **WAYS[way]), use_resource=use_resource)
    assert_same(found, alone(), 1e-2 if way == "compressed" else 1e-5)


@pytest.mark.parametrize("passes", [2, 3])
@pytest.mark.parametrize("divide", [True, False])
def test_gradients_of_several_passes(passes, divide):
    found = trained(
        lambda optimizer: hvd.DistributedOptimizer(
            optimizer, backward_passes_per_step=passes, average_aggregated_gradients=divide
        )
    )
    assert_same(found, alone(passes=passes, divide=divide), 1e-4)


def test_passes_in_order_with_the_global_step():
    """The step counts every pass, and is read before the update."""
    with graph() as session:
        variable = v1.get_variable("variable", initializer=[0.0])
        passes = 4
        optimizer = hvd.DistributedOptimizer(
            v1.train.GradientDescentOptimizer(1.0), backward_passes_per_step=passes, average_aggregated_gradients=True
        )
        pairs = [(tf.constant([float(hvd.rank())]), variable)]
        optimizer._optimizer.compute_gradients = lambda *args, **kwargs: pairs
        pairs_of_all = optimizer.compute_gradients()
        global_step = v1.get_variable("step", initializer=tf.constant(0, tf.int64), trainable=False)
        with tf.control_dependencies([grad for grad, _ in pairs_of_all]):
            before = global_step.read_value()
        with tf.control_dependencies([before]):
            update = optimizer.apply_gradients(pairs_of_all, global_step=global_step)
        initialize(session)
        mean = (hvd.size() - 1) / 2
        for number in range(10):
            step, _ = session.run([before, update])
            assert step == number
            expected = -mean * math.floor((number + 1) / passes)
            assert_same(session.run(variable), numpy.float32([expected]), 1e-6)


class Given(v1.train.GradientDescentOptimizer):
    """Has the gradients that it is made with."""

    def __init__(self, pairs, rate=1.0):
        super().__init__(rate)
        self.pairs = pairs

    def compute_gradients(self, *args, **kwargs):
        return self.pairs


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("as_dense", [True, False])
def test_sparse_gradients(passes, as_dense):
    with graph() as session:
        table = v1.get_variable("table", initializer=tf.zeros((6, 2)))
        grad = tf.IndexedSlices(tf.fill((2, 2), hvd.rank() + 1.0), tf.constant([hvd.rank(), 5]), tf.constant([6, 2]))
        optimizer = hvd.DistributedOptimizer(
            Given([(grad, table), (None, v1.get_variable("unused", initializer=1.0))]),
            sparse_as_dense=as_dense,
            backward_passes_per_step=passes,
        )
        if passes == 2 and not as_dense:
            with pytest.raises(ValueError, match="set sparse_as_dense=True"):
                optimizer.compute_gradients()
            return
        pairs = optimizer.compute_gradients()
        assert isinstance(pairs[0][0], tf.IndexedSlices) != as_dense and pairs[1][0] is None
        update = optimizer.apply_gradients(pairs)
        initialize(session)
        for _ in range(2):
            session.run(update)
        expected = numpy.zeros((6, 2), "float32")
        for rank in range(hvd.size()):
            for row in (rank, 5):
                expected[row] -= 2 * (rank + 1) / hvd.size()
        assert_same(session.run(table), expected, 1e-6)


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("scales", [True, False])
def test_local_variables(passes, scales):
    with graph() as session:
        shared, local = (v1.get_variable(name, initializer=[0.0]) for name in ("shared", "local"))
        own = tf.constant([hvd.rank() + 1.0])
        optimizer = hvd.DistributedOptimizer(
            Given([(own, shared), (own, local)]), scale_local_gradients=scales, backward_passes_per_step=passes
        )
        optimizer.register_local_var(local)
        update = optimizer.apply_gradients(optimizer.compute_gradients())
        initialize(session)
        for _ in range(passes):
            session.run(update)
        mean = sum(range(1, hvd.size() + 1)) / hvd.size()
        alone = (hvd.rank() + 1) / (hvd.size() if scales else 1)
        assert_same(
            session.run([shared, local]), [numpy.float32([-passes * mean]), numpy.float32([-passes * alone])], 1e-6
        )


def test_variables_in_groups():
    with graph() as session:
        variables = [v1.get_variable(f"v{i}", initializer=tf.zeros(i + 1)) for i in range(4)]
        pairs = [(tf.fill(variable.shape, hvd.rank() + 1.0), variable) for variable in variables]
        optimizer = hvd.DistributedOptimizer(Given(pairs), groups=[[variables[2], variables[0]], [variables[1]]])
        update = optimizer.apply_gradients(optimizer.compute_gradients())
        initialize(session)
        session.run(update)
        mean = numpy.float32(sum(range(1, hvd.size() + 1)) / hvd.size())
        assert_same(session.run(variables), [numpy.full(i + 1, -mean) for i in range(4)], 1e-6)


def test_process_set(dynamic):
    """On the other ranks the optimizer is a local one."""
    evens = list(range(0, hvd.size(), 2))
    with (
        contextlib.nullcontext(hvd.global_process_set) if hvd.size() == 1 else added(evens) as process_set,
        graph() as session,
    ):
        variable = v1.get_variable("variable", initializer=[0.0], use_resource=False)
        optimizer = hvd.DistributedOptimizer(
            Given([(tf.constant([float(hvd.rank())]), variable)]), process_set=process_set
        )
        update = optimizer.apply_gradients(optimizer.compute_gradients())
        initialize(session)
        session.run(update)
        expected = sum(evens) / len(evens) if hvd.rank() in evens else hvd.rank()
        assert_same(session.run(variable), numpy.float32([-expected]), 1e-6)


@pytest.mark.parametrize("op", ["Average", "Adasum"])
def test_eagerly(op):
    variable = tf.Variable([1.0, 2.0])
    optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(0.5), op=getattr(hvd, op))
    scale = 1.0 if op == "Adasum" else hvd.rank() + 1.0
    for _ in range(2):
        optimizer.minimize(lambda: scale * tf.reduce_sum(variable))
    mean = 1.0 if op == "Adasum" else sum(range(1, hvd.size() + 1)) / hvd.size()
    assert_same(variable.numpy(), numpy.float32([1 - mean, 2 - mean]), 1e-6)


@pytest.mark.parametrize("use_resource", [True, False])
@pytest.mark.parametrize("passes", [1, 2])
def test_adasum_of_equal_steps_is_the_step(passes, use_resource):
    """All ranks have the same data; every `passes` steps nothing changes by Adasum."""
    steps = []
    for op in (hvd.Adasum, None):
        with graph() as session:
            variable = v1.get_variable("variable", initializer=[1.0, 2.0], use_resource=use_resource)
            optimizer = v1.train.MomentumOptimizer(0.1, 0.9)
            if op is not None:
                optimizer = hvd.DistributedOptimizer(optimizer, op=op, backward_passes_per_step=passes)
            update = optimizer.minimize(tf.reduce_sum(variable**2))
            initialize(session)
            values = []
            for _ in range(4):
                session.run(update)
                values.append(session.run(variable))
            steps.append(values)
            if op is not None and hvd.size() > 1:
                assert set(optimizer.get_slot_names()) == {"delta_start", "momentum"}
                assert optimizer.get_slot(variable, "delta_start") is not None
                assert optimizer.get_slot(variable, "momentum") is not None
    assert_same(steps[0], steps[1], 1e-5)


@pytest.mark.several_ranks
def test_adasum_adds_orthogonal_steps_up(dynamic):
    """Each rank moves a different element, two steps at a time."""
    with own_set() as process_set:
        for members in (hvd.global_process_set, process_set):
            ranks = members.ranks
            with graph() as session:
                variable = v1.get_variable("variable", initializer=tf.zeros(hvd.size()))
                optimizer = hvd.DistributedOptimizer(
                    v1.train.GradientDescentOptimizer(1.0),
                    op=hvd.Adasum,
                    backward_passes_per_step=2,
                    process_set=members,
                )
                update = optimizer.minimize(-variable[hvd.rank()])
                initialize(session)
                own = numpy.eye(hvd.size(), dtype="float32")
                for number in range(4):
                    session.run(update)
                    together = own[ranks].sum(0) * (number + 1 - (number + 1) % 2)
                    assert_same(session.run(variable), together + own[hvd.rank()] * ((number + 1) % 2), 1e-6)


def test_bad_arguments():
    def refused(text, **arguments):
        with pytest.raises(ValueError, match=text):
            hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(1.0), **arguments)

    refused("gradient_predivide_factor not supported with op != Average", gradient_predivide_factor=2.0, op=hvd.Sum)
    refused("Adasum does not support average_aggregated_gradients", op=hvd.Adasum, average_aggregated_gradients=True)
    refused("groups must be a positive integer or a list of lists", groups=-1)
    refused("backward_passes_per_step must be > 0", backward_passes_per_step=0)
    refused("must be > 0, an integer, not 1.5", backward_passes_per_step=1.5)
    refused("gradient_predivide_factor must not be 0", gradient_predivide_factor=0.0)
    refused("compression='fp16' is not one of hvd.Compression", compression="fp16")
    refused("needs graph mode", backward_passes_per_step=2)
    with pytest.warns(DeprecationWarning, match="use `groups`"):
        optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(1.0), num_groups=2)
    assert isinstance(optimizer, v1.train.Optimizer)
    with pytest.raises(ValueError, match="already"):
        hvd.DistributedOptimizer(optimizer)
    with pytest.raises(ValueError, match=r"op=Adasum is for optimizers of tf.compat.v1.train"):
        hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1), op=hvd.Adasum)


def test_hook_broadcasts_what_the_session_begins_with():
    with tf.Graph().as_default():
        variable = v1.get_variable("variable", initializer=tf.fill([3], float(hvd.rank())))
        optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(1.0), backward_passes_per_step=2)
        update = optimizer.minimize(tf.reduce_sum(variable) * (hvd.rank() + 1.0), v1.train.get_or_create_global_step())
        hooks = [hvd.BroadcastGlobalVariablesHook(hvd.size() - 1), v1.train.StopAtStepHook(last_step=4)]
        assert isinstance(hooks[0], v1.train.SessionRunHook)
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            assert_same(session.run(variable), numpy.full(3, hvd.size() - 1, "float32"))
            while not session.should_stop():
                value, _ = session.run([variable, update])
        mean = sum(range(1, hvd.size() + 1)) / hvd.size()
        assert_same(value, numpy.full(3, hvd.size() - 1 - 2 * mean, "float32"), 1e-6)
