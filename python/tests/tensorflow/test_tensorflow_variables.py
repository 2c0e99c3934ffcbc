"""Broadcasting of variables and of objects. On any number of ranks."""

import numpy
import pytest
import tensorflow as tf

import horovod.tensorflow as hvd
from tf_modes import REDUCED, added, assert_same, own_set

v1 = tf.compat.v1
# Those that operations carry as others, too: random generators of Keras 3 have uint32.
DTYPES = [*REDUCED, "bool", "uint16", "uint32", "uint64", "complex64", "complex128"]


def value(dtype, rank=None):
    rank = hvd.rank() if rank is None else rank
    return (numpy.arange(6).reshape(2, 3) % 2 + rank % 2).astype(tf.as_dtype(dtype).as_numpy_dtype)


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("mode", ["eager", "function", "session of resources", "session of references", "xla"])
def test_broadcast_variables(mode, inplace):
    dtypes = [dtype for dtype in DTYPES if mode != "xla" or dtype != "uint16"]
    for root in {0, hvd.size() - 1}:
        expected = [value(dtype, root) for dtype in dtypes]
        if mode.startswith("session"):
            with tf.Graph().as_default(), v1.Session() as session:
                variables = [
                    v1.get_variable(f"v{dtype}", initializer=value(dtype), use_resource="resources" in mode)
                    for dtype in dtypes
                ]
                operation = hvd.broadcast_variables(variables, root, inplace=inplace)
                session.run(v1.global_variables_initializer())
                session.run(operation)
                assert_same(session.run(variables), expected)
            continue
        variables = [tf.Variable(value(dtype)) for dtype in dtypes]
        if mode == "eager":
            assert hvd.broadcast_variables(variables, root, inplace=inplace) is None
        else:

            @tf.function(jit_compile=mode == "xla")
            def broadcast(variables=variables, root=root):
                hvd.broadcast_variables(variables, root, inplace=inplace)

            broadcast()
        assert_same([variable.numpy() for variable in variables], expected)


def test_a_variable_that_can_not_be_sent_is_named():
    words = tf.Variable(["a", "b"], name="words")
    with pytest.raises(
        TypeError, match=r"can't send the variable words:0, whose type is string: leave it out\. It takes uint8, "
    ):
        hvd.broadcast_variables([tf.Variable(1.0), words], 0)


def test_variables_of_keras():
    def made():
        tf.keras.utils.set_random_seed(hvd.rank())
        model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2), tf.keras.layers.Dropout(0.5)])
        return model, tf.keras.optimizers.Adam()

    model, optimizer = made()
    optimizer.build(model.trainable_variables)
    variables = optimizer.variables() if callable(optimizer.variables) else optimizer.variables
    hvd.broadcast_variables(model.variables, root_rank=0)
    hvd.broadcast_variables(variables, root_rank=0)
    everything = [numpy.asarray(variable) for variable in (*model.variables, *variables)]
    for of_rank in hvd.allgather_object(everything):
        assert_same(of_rank, everything)


def test_in_place_returns_the_variables():
    variables = [tf.Variable(value("float32")), tf.Variable(value("int64"))]
    results = hvd.broadcast_(variables, 0, name="both")
    assert_same([numpy.asarray(each) for each in results], [value("float32", 0), value("int64", 0)])
    assert_same([each.numpy() for each in variables], [value("float32", 0), value("int64", 0)])


def test_no_variables():
    assert hvd.broadcast_variables([], 0) is None
    with tf.Graph().as_default(), v1.Session() as session:
        session.run(hvd.broadcast_variables([], 0))


@pytest.mark.several_ranks
def test_process_sets(dynamic):
    with own_set() as process_set:
        root = process_set.ranks[-1]
        variable = tf.Variable([hvd.rank()])
        hvd.broadcast_variables([variable], root, process_set=process_set)
        assert variable.numpy() == [root]
        number = len(process_set.ranks)
        assert hvd.broadcast_object({"root": hvd.rank()}, root, process_set=process_set) == {"root": root}
        assert hvd.broadcast_object_fn(root, process_set=process_set)(hvd.rank()) == root
        assert hvd.allgather_object(hvd.rank(), process_set=process_set) == process_set.ranks
        assert len(process_set.ranks) == number


@pytest.mark.several_ranks
def test_different_variables_are_an_error_on_all_ranks():
    variable = tf.Variable(tf.zeros(2 + hvd.rank()))
    with pytest.raises(tf.errors.OpError, match="HorovodRequestError"):
        hvd.broadcast_variables([tf.Variable(1.0), variable], 0)
    assert variable.shape == (2 + hvd.rank(),)


def test_global_variables():
    with pytest.raises(RuntimeError, match="and this is eager execution"):
        hvd.broadcast_global_variables(0)
    with tf.Graph().as_default(), v1.Session() as session:
        variables = [v1.get_variable(f"v{i}", initializer=value("float32")) for i in range(3)]
        operation = hvd.broadcast_global_variables(hvd.size() - 1)
        session.run(v1.global_variables_initializer())
        session.run(operation)
        assert_same(session.run(variables), [value("float32", hvd.size() - 1)] * 3)


def test_objects():
    obj = {"hello": 123, 0: [1, 2], "array": numpy.arange(3)} if hvd.rank() == 0 else {}
    received = hvd.broadcast_object(obj, root_rank=0, name="given")
    assert received["hello"] == 123 and received["array"].tolist() == [0, 1, 2]
    mine = {"rank": hvd.rank(), **({"more": 42} if hvd.rank() == 1 else {})}
    expected = [{"rank": rank, **({"more": 42} if rank == 1 else {})} for rank in range(hvd.size())]
    assert hvd.allgather_object(mine) == expected


def test_objects_while_a_graph_is_made():
    with tf.Graph().as_default(), v1.Session() as session:
        receive = hvd.broadcast_object_fn(root_rank=0, session=session, name="receive")
        for number in range(2):
            assert receive(number if hvd.rank() == 0 else None) == number
        assert hvd.broadcast_object([hvd.rank()], 0, session=session) == [0]
        assert hvd.allgather_object(hvd.rank(), session=session) == list(range(hvd.size()))
    with pytest.raises(ValueError):
        hvd.broadcast_object(1, root_rank=hvd.size())


def test_a_set_of_one_rank(dynamic):
    if hvd.size() > 1:
        with added([0]) as process_set:
            variable = tf.Variable([hvd.rank()])
            if hvd.rank() == 0:
                hvd.broadcast_variables([variable], 0, process_set=process_set)
            assert variable.numpy() == [hvd.rank()]
