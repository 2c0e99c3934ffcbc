"""Operations in whatever order the ranks issue them, and their names. On any number of ranks; for many, and
one thread, see tests/frameworks."""

import random

import numpy
import tensorflow as tf

import horovod.tensorflow as hvd
from tf_modes import assert_same, in_session, mine, of_all, reduced

COUNT = 12


def programs(orders, seed):
    """Functions of a tensor: each runs COUNT operations in this rank's order, all independent."""
    rng = random.Random(f"{seed} {hvd.rank()}")
    for _ in range(orders):
        order = list(range(COUNT))
        rng.shuffle(order)

        def program(tensor, order=order):
            results = {i: hvd.allreduce(tensor * (i + 1), op=hvd.Sum, name=f"number{i}") for i in order}
            return [results[i] for i in range(COUNT)]

        yield program


def test_functions_in_opposite_orders():
    total = reduced("Sum", (3,))
    for program in programs(8, "function"):
        function = tf.function(program)
        for _ in range(3):
            for i, result in enumerate(function(tf.constant(mine((3,))))):
                assert_same(result.numpy(), total * (i + 1))


def test_graphs_in_opposite_orders():
    for program in programs(4, "graph"):
        for i, result in enumerate(in_session(program, mine((3,)))):
            assert_same(result, reduced("Sum", (3,)) * (i + 1))


def test_function_that_one_rank_traces_more_often():
    traced = []

    @tf.function(reduce_retracing=False)
    def function(tensor, flag):
        traced.append(flag)
        weights = tf.reduce_sum(tensor) * tf.ones(3)
        return hvd.allreduce(weights, op=hvd.Sum), hvd.allgather(tensor)

    for step in range(4):
        rows = mine((4, 2))[: step + 1 if hvd.rank() == 0 else 1]
        total, gathered = function(tf.constant(rows), step if hvd.rank() == 0 else 0)
        expected = [of_all((4, 2))[rank][: step + 1 if rank == 0 else 1] for rank in range(hvd.size())]
        assert_same(total.numpy(), numpy.full(3, sum(rows.sum() for rows in expected), "float32"), 1e-6)
        assert_same(gathered.numpy(), numpy.concatenate(expected).astype("float32"))
    assert len(traced) == (4 if hvd.rank() == 0 else 1)


def test_operation_with_unused_result_takes_part():
    @tf.function
    def function(tensor):
        total = hvd.allreduce(tensor, op=hvd.Sum, name="used by one")
        return total if hvd.rank() == 0 else tensor

    found = function(tf.constant(mine((2,)))).numpy()
    assert_same(found, reduced("Sum", (2,)) if hvd.rank() == 0 else mine((2,)))


def test_loop_and_condition_in_a_function():
    @tf.function
    def function(tensor):
        def body(i, total):
            return i + 1, total + hvd.allreduce(tensor * tf.cast(i, tf.float32), op=hvd.Sum)

        _, total = tf.while_loop(lambda i, _: i < 10, body, (0, tf.zeros(2)), parallel_iterations=10)
        return tf.cond(tf.reduce_sum(total) > 0, lambda: hvd.allreduce(total, op=hvd.Max), lambda: total)

    assert_same(function(tf.constant(mine((2,)))).numpy(), reduced("Sum", (2,)) * numpy.float32(45))


def test_iterations_that_run_at_once():
    """Each has an operation, of one name, on its own element."""

    @tf.function
    def function(tensors):
        return tf.map_fn(lambda each: hvd.allreduce(each, op=hvd.Sum), tensors, parallel_iterations=10)

    tensors = numpy.arange(60, dtype="float32").reshape(20, 3) * (hvd.rank() + 1)
    expected = numpy.arange(60, dtype="float32").reshape(20, 3) * sum(range(1, hvd.size() + 1))
    assert_same(function(tf.constant(tensors)).numpy(), expected)


def test_tensor_from_outside_of_the_function():
    constant, variable = tf.constant(mine((2,))), tf.Variable(mine((2,)))

    @tf.function
    def function():
        return hvd.allreduce(constant, op=hvd.Sum), hvd.allreduce(variable, op=hvd.Sum), hvd.allgather(constant)

    first, second, gathered = function()
    assert_same([first.numpy(), second.numpy()], [reduced("Sum", (2,))] * 2)
    assert_same(gathered.numpy(), of_all((2,)).reshape(-1).astype("float32"))


def test_names():
    @tf.function
    def function(tensor):
        with tf.name_scope("scope" if hvd.rank() == 0 else "other_scope"):
            return hvd.allreduce(tensor, op=hvd.Sum, name="same", ignore_name_scope=True)

    assert_same(function(tf.constant(mine((2,)))).numpy(), reduced("Sum", (2,)))
    assert_same(hvd.allreduce(mine((2,)), op=hvd.Sum, name="same").numpy(), reduced("Sum", (2,)))


def test_eager_operations_have_few_names(monkeypatch):
    """TensorFlow caches a function for each name, and never drops it."""
    from horovod.tensorflow import mpi_ops

    names = []
    allreduce = mpi_ops.functions.horovod_allreduce

    def recorded(*args, tensor_name, **fields):
        names.append(tensor_name)
        return allreduce(*args, tensor_name=tensor_name, **fields)

    monkeypatch.setattr(mpi_ops.functions, "horovod_allreduce", recorded)
    variables = [tf.Variable(mine((3,))), tf.Variable(mine((2,)))]
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = sum(tf.reduce_sum(variable**2) for variable in variables)
        hvd.DistributedGradientTape(tape).gradient(loss, variables)
    assert len(set(names)) == (hvd.size() > 1)
    for _ in range(200):
        hvd.allreduce(tf.constant(1.0))
    assert len(set(names)) <= 65 and len(names) >= 200
