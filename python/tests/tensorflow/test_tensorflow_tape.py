"""Distributed tapes: eagerly, in tf.function, and compiled by XLA. On any number of ranks."""

import contextlib

import numpy
import pytest
import tensorflow as tf

import horovod.tensorflow as hvd
from tf_modes import added, assert_same, own_set

MODES = ("eager", "function", "xla")
SCALE = [1.0, 2.0, 0.5, 3.0]  # of each rank's loss


def scale(rank=None):
    return SCALE[(hvd.rank() if rank is None else rank) % len(SCALE)]


def average(ranks=None):
    ranks = range(hvd.size()) if ranks is None else ranks
    return sum(scale(rank) for rank in ranks) / len(ranks)


def called(mode, function, *arguments):
    if mode != "eager":
        function = tf.function(function, jit_compile=mode == "xla")
    return function(*arguments)


class Model:
    """A sum of squares of three variables; the fourth is not used."""

    def __init__(self):
        self.variables = [tf.Variable(tf.range(1.0, n + 2.0), name=f"v{n}") for n in range(4)]

    def loss(self):
        return scale() * sum(tf.reduce_sum(variable**2) for variable in self.variables[:3])

    def gradients(self, tape_of, **arguments):
        """Returns the gradients of the tape that `tape_of` wraps; None for the fourth variable."""
        with tf.GradientTape() as tape:
            loss = self.loss()
        tape = tape_of(tape)
        assert isinstance(tape, tf.GradientTape) and type(tape).__name__ == "GradientTape"
        return tape.gradient(loss, self.variables, **arguments)


def assert_scaled(grads, model, factor, tolerance=1e-6):
    assert grads[3] is None
    for grad, variable in zip(grads[:3], model.variables):
        assert_same(grad.numpy(), 2 * factor * variable.numpy(), tolerance)


WAYS = {
    "default": dict(),
    "groups": dict(groups=2),
    "more groups than gradients": dict(groups=7),
    "compressed": dict(compression=hvd.Compression.fp16),
    "predivided": dict(gradient_predivide_factor=2.0),
    "placed": dict(device_dense="/cpu:0", device_sparse="/cpu:0"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", MODES)
def test_gradients_are_averages(mode, way):
    model = Model()
    grads = called(mode, lambda: model.gradients(lambda tape: hvd.DistributedGradientTape(tape, **WAYS[way])))
    assert_scaled(grads, model, average(), 1e-3 if way == "compressed" else 1e-6)


@pytest.mark.parametrize("op", ["Sum", "Min", "Max", "Product", "Adasum"])
@pytest.mark.parametrize("mode", MODES)
def test_reductions(mode, op):
    model = Model()
    grads = called(mode, lambda: model.gradients(lambda tape: hvd.DistributedGradientTape(tape, op=getattr(hvd, op))))
    own = [2 * variable.numpy() for variable in model.variables[:3]]
    for grad, value in zip(grads, own):
        stacked = numpy.stack([value * numpy.float32(scale(rank)) for rank in range(hvd.size())])
        if op == "Adasum":  # of parallel vectors, which is what they are, it is the mean of two, and so on
            expected = hvd.allreduce(value * numpy.float32(scale()), op=hvd.Adasum).numpy()
        else:
            expected = {"Sum": stacked.sum, "Min": stacked.min, "Max": stacked.max, "Product": stacked.prod}[op](0)
        assert_same(grad.numpy(), expected, 1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_groups_of_variables(mode):
    model = Model()
    first, second, _, unused = model.variables
    groups = [[second, unused], [first]]
    grads = called(mode, lambda: model.gradients(lambda tape: hvd.DistributedGradientTape(tape, groups=groups)))
    assert_scaled(grads, model, average())


def test_num_groups_is_an_older_name():
    model = Model()
    with pytest.warns(DeprecationWarning, match="use `groups`"):
        grads = model.gradients(lambda tape: hvd.DistributedGradientTape(tape, num_groups=2))
    assert_scaled(grads, model, average())


def test_bad_arguments():
    tape = tf.GradientTape()
    for groups in (-1, 0, 1.5, "two", [tf.Variable(1.0)]):
        with pytest.raises(ValueError, match="groups must be a positive integer or a list of lists"):
            hvd.DistributedGradientTape(tape, groups=groups)
    with pytest.raises(ValueError, match="gradient_predivide_factor not supported with op != Average"):
        hvd.DistributedGradientTape(tape, op=hvd.Sum, gradient_predivide_factor=2.0)
    with pytest.raises(ValueError, match=r"compression='fp16' is not one of hvd\.Compression"):
        hvd.DistributedGradientTape(tape, compression="fp16")
    with pytest.raises(TypeError, match=r"needs a tf\.GradientTape, got int"):
        hvd.DistributedGradientTape(3)
    with pytest.raises(ValueError, match="already"):
        hvd.DistributedGradientTape(hvd.DistributedGradientTape(tape))
    with pytest.raises(NotImplementedError, match="no jacobian"):
        hvd.DistributedGradientTape(tape).jacobian(None, None)
    with pytest.raises(NotImplementedError, match="no jacobian"):
        hvd.DistributedGradientTape(tape).batch_jacobian(None, None)


def test_sources_are_any_nest():
    variable, constant = tf.Variable([1.0, 2.0]), tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(constant)
        loss = scale() * (tf.reduce_sum(variable**2) + constant**2)
    tape = hvd.DistributedGradientTape(tape)
    assert_same(tape.gradient(loss, variable).numpy(), 2 * average() * variable.numpy(), 1e-6)
    grads = tape.gradient(loss, {"a": [variable], "b": (constant, tf.Variable(0.0))})
    assert set(grads) == {"a", "b"} and type(grads["b"]) is tuple and grads["b"][1] is None
    assert_same(grads["a"][0].numpy(), 2 * average() * variable.numpy(), 1e-6)
    assert_same(grads["b"][0].numpy(), numpy.float32(6 * average()), 1e-6)
    zeros = tape.gradient(loss, [tf.Variable([5.0])], unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert_same(zeros[0].numpy(), numpy.zeros(1, "float32"))
    twice = tape.gradient(loss, [constant], output_gradients=tf.constant(2.0))
    assert_same(twice[0].numpy(), numpy.float32(12 * average()), 1e-6)


def test_where_a_tape_is_wrapped():
    """A tape may be wrapped before, while and after it records."""
    model = Model()
    with hvd.DistributedGradientTape(tf.GradientTape()) as tape:
        loss = model.loss()
    assert_scaled(tape.gradient(loss, model.variables), model, average())
    with pytest.raises(RuntimeError, match="non-persistent"):
        tape.gradient(loss, model.variables)
    with tf.GradientTape() as tape:
        loss = model.loss()
        grads = hvd.DistributedGradientTape(tape).gradient(loss, model.variables)
    assert_scaled(grads, model, average())
    with tf.GradientTape(persistent=True) as tape:
        loss = model.loss()
        wrapped = hvd.DistributedGradientTape(tape)
    assert_scaled(wrapped.gradient(loss, model.variables), model, average())
    assert_scaled(tape.gradient(loss, model.variables), model, scale())


class OwnTape(tf.GradientTape):
    """A tape as users derive it."""

    def __init__(self, note, **kwargs):
        super().__init__(**kwargs)
        self.note = note


def test_tapes_of_derived_classes():
    model = Model()
    with OwnTape("kept", persistent=True) as tape:
        loss = model.loss()
    wrapped = hvd.DistributedGradientTape(tape)
    assert isinstance(wrapped, OwnTape) and wrapped.note == "kept"
    for _ in range(2):
        assert_scaled(wrapped.gradient(loss, model.variables), model, average())


@pytest.mark.parametrize("mode", ["function", "eager"])
@pytest.mark.parametrize("as_dense", [False, True])
def test_sparse_gradients(mode, as_dense):
    table, other = tf.Variable(tf.ones((6, 2))), tf.Variable([1.0])

    def step():
        with tf.GradientTape() as tape:
            rows = tf.gather(table, [hvd.rank(), hvd.rank() + 1, 0])
            loss = tf.reduce_sum(rows) * scale() + scale() * other[0]
        return hvd.DistributedGradientTape(tape, sparse_as_dense=as_dense).gradient(loss, [table, other])

    grad, dense = called(mode, step)
    assert isinstance(grad, tf.IndexedSlices) != as_dense
    expected = numpy.zeros((6, 2), "float32")
    for rank in range(hvd.size()):
        for row in (rank, rank + 1, 0):
            expected[row] += scale(rank) / hvd.size()
    assert_same(tf.convert_to_tensor(grad).numpy(), expected, 1e-6)
    assert_same(dense.numpy(), numpy.float32([average()]), 1e-6)


@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_ranks_may_have_other_names_for_the_same(mode, generic):
    """As when one rank has made more layers before. Two tapes of a function are distinguished."""
    first, second = (tf.Variable([start], name=f"of_rank_{hvd.rank()}") for start in (1.0, 2.0))
    factors = (1.0,) if mode == "xla" else (1.0, 10.0)  # XLA may order two calls by other names

    def step():
        grads = []
        for factor in factors:
            with tf.name_scope(f"of_rank_{hvd.rank()}"):
                with tf.GradientTape() as tape:
                    loss = factor * scale() * tf.reduce_sum(first * second)
                tape = hvd.DistributedGradientTape(tape)
                grads += tape.gradient(loss, [first, second], use_generic_names=generic)
        return grads

    found = [grad.numpy() for grad in called(mode, step)]
    expected = [average() * factor * value for factor in factors for value in (2.0, 1.0)]
    assert_same(found, [numpy.float32([value]) for value in expected], 1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_process_set(mode, dynamic):
    """The gradients of the other ranks do not change."""
    model = Model()
    evens = list(range(0, hvd.size(), 2))
    with contextlib.nullcontext(hvd.global_process_set) if hvd.size() == 1 else added(evens) as process_set:
        grads = called(
            mode, lambda: model.gradients(lambda tape: hvd.DistributedGradientTape(tape, process_set=process_set))
        )
        assert_scaled(grads, model, average(evens) if hvd.rank() in evens else scale())


@pytest.mark.parametrize("scales", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_local_sources(mode, scales):
    model = Model()

    def step():
        with tf.GradientTape(persistent=True) as tape:
            loss = model.loss()
        tape = hvd.DistributedGradientTape(tape, scale_local_gradients=scales)
        for local in model.variables[1::2]:
            tape.register_local_source(local)
        local, others = tape.get_local_and_global_gradients(loss, model.variables)
        assert [pair[0] is variable for pair, variable in zip(local, model.variables[1::2])] == [True] * 2
        assert [pair[0] is variable for pair, variable in zip(others, model.variables[::2])] == [True] * 2
        again = tape.gradient(loss, model.variables)
        return [local[0][1], others[0][1], others[1][1], local[1][1], *again[:3]]

    found = called(mode, step)
    share = scale() / (hvd.size() if scales else 1)
    for grad, variable, factor in (
        (found[0], 1, share),
        (found[1], 0, average()),
        (found[2], 2, average()),
        (found[4], 0, average()),
        (found[5], 1, share),
        (found[6], 2, average()),
    ):
        assert_same(grad.numpy(), numpy.float32(2 * factor) * model.variables[variable].numpy(), 1e-6)
    assert found[3] is None


def test_local_sources_of_a_process_set(dynamic):
    variable = tf.Variable([1.0])
    with own_set() as process_set:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(variable)
        tape = hvd.DistributedGradientTape(tape, process_set=process_set)
        tape.register_local_source(variable)
        assert_same(tape.gradient(loss, variable).numpy(), numpy.float32([1 / process_set.size()]))


def test_local_sources_with_sparse_gradients():
    table = tf.Variable(tf.ones((3, 2)))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(table, [1, 1]))
    tape = hvd.DistributedGradientTape(tape)
    tape.register_local_source(table)
    grad = tape.gradient(loss, table)
    assert_same(grad.values.numpy(), numpy.full((2, 2), 1 / hvd.size(), "float32"))
    assert grad.indices.numpy().tolist() == [1, 1]


def layers():
    make = dict(kernel_initializer=tf.keras.initializers.Constant(hvd.rank() + 1.0), use_bias=False)
    chain = [tf.keras.layers.Dense(2, **make), tf.keras.layers.Activation("linear"), tf.keras.layers.Dense(1, **make)]
    return chain, tf.keras.Sequential([tf.keras.Input((3,)), *chain])


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_partial_tape_leaves_layers_to_the_ranks(count):
    chain, model = layers()
    inputs = tf.ones((4, 3)) * scale()

    def grads(tape_of):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(inputs))
        return [grad.numpy() for grad in tape_of(tape).gradient(loss, model.trainable_weights)]

    own = grads(lambda tape: tape)
    found = grads(lambda tape: hvd.PartialDistributedGradientTape(tape, local_layers=chain[:count] or None))
    local = {id(weight) for layer in chain[:count] for weight in layer.trainable_weights}
    for weight, before, after in zip(model.trainable_weights, own, found):
        if id(weight) in local:
            assert_same(after, before / numpy.float32(hvd.size()), 1e-6)
        else:
            assert_same(after, numpy.mean(hvd.allgather_object(before), 0), 1e-6)


def test_partial_tape_takes_one_layer_and_nothing_but_layers():
    chain, _ = layers()
    hvd.PartialDistributedGradientTape(tf.GradientTape(), local_layers=chain[0])
    for bad in ([chain[0], "dense"], [tf.Variable(1.0)]):
        with pytest.raises(ValueError, match="local_layers must hold Keras layers only"):
            hvd.PartialDistributedGradientTape(tf.GradientTape(), local_layers=bad)


@pytest.mark.parametrize("mode", MODES)
def test_training_equals_one_process_on_the_joined_batch(mode):
    rows = 4 * hvd.size()
    data = numpy.random.RandomState(0).randn(5, rows, 3).astype("float32")
    wanted = data @ numpy.float32([[1.0], [-2.0], [0.5]]) + 0.25

    def trained(inputs, targets, tape_of):
        weights, bias = tf.Variable(tf.zeros((3, 1))), tf.Variable(tf.zeros(1))

        def step(batch, target):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((batch @ weights + bias - target) ** 2)
            for variable, grad in zip((weights, bias), tape_of(tape).gradient(loss, (weights, bias))):
                variable.assign_sub(0.1 * grad)

        step = step if mode == "eager" else tf.function(step, jit_compile=mode == "xla")
        for batch, target in zip(inputs, targets):
            step(tf.constant(batch), tf.constant(target))
        return [weights.numpy(), bias.numpy()]

    mine = slice(hvd.rank(), None, hvd.size())
    found = trained(data[:, mine], wanted[:, mine], hvd.DistributedGradientTape)
    assert_same(found, trained(data, wanted, lambda tape: tape), 1e-5)


@pytest.mark.several_ranks
def test_model_that_is_spread_over_the_ranks():
    """Each rank has a different embedding, whose rows alltoall brings to the others."""
    embedding = tf.Variable(tf.fill((4, 2), hvd.rank() + 1.0))
    dense = tf.Variable(tf.ones((2 * hvd.size(), 1)))
    asked = tf.constant([(hvd.rank() + other) % 4 for other in range(hvd.size())])

    @tf.function
    def step(wanted):
        with tf.GradientTape() as tape:
            rows = hvd.alltoall(tf.gather(embedding, wanted))
            loss = tf.reduce_mean(tf.reshape(rows, (1, -1)) @ dense)
        tape = hvd.DistributedGradientTape(tape)
        tape.register_local_source(embedding)
        return loss, tape.gradient(loss, [embedding, dense])

    loss, (local, shared) = step(hvd.alltoall(asked))
    size = hvd.size()
    assert float(loss) == size * (size + 1)
    assert_same(shared.numpy(), numpy.repeat(numpy.arange(1.0, size + 1), 2).reshape(-1, 1).astype("float32"))
    counts = numpy.bincount([(other + hvd.rank()) % 4 for other in range(size)], minlength=4)
    expected = numpy.stack([counts, counts], 1).astype("float32") / numpy.float32(size)
    assert_same(tf.convert_to_tensor(local).numpy(), expected)
