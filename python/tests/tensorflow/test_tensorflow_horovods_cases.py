"""Cases of Horovod's own tests that no other file here has; python/tests/data/horovods_cases.md says where all
of them are. On any number of ranks."""

import numpy
import pytest
import tensorflow as tf

import horovod.tensorflow as hvd
from tf_modes import MODES, NOT_COMPILED, added, assert_same, in_session, mine, of_all, of_rank, run

v1 = tf.compat.v1
FACTOR = 0.1915194503788923  # no sum of powers of two
SCALED = ["uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32"]


def scaled(values, dtype):
    """Integers are multiplied as float64 and rounded towards zero, half precision as float32."""
    wide = {"float16": "float32", "bfloat16": "float32", "float32": "float32"}.get(dtype, "float64")
    return (numpy.asarray(values, wide) * numpy.dtype(wide).type(FACTOR)).astype(tf.as_dtype(dtype).as_numpy_dtype)


def many(rank, dtype):
    values = numpy.arange(4 * hvd.size() * 5).reshape(-1, 5) % 30 + rank % 2
    return (values if dtype.startswith("u") else 15 - values).astype(tf.as_dtype(dtype).as_numpy_dtype)


@pytest.mark.parametrize("kind", ["allreduce", "grouped_allreduce", "reducescatter", "grouped_reducescatter"])
@pytest.mark.parametrize("mode", MODES)
def test_factors_that_round(mode, kind):
    if mode == "xla" and "reducescatter" in kind:
        pytest.skip("XLA can't have it")
    operation = getattr(hvd, kind)

    def both(*tensors):
        results = []
        for factor in ("prescale_factor", "postscale_factor"):
            settings = {"op": hvd.Sum, factor: FACTOR}
            if "grouped" in kind:
                results += operation(tensors, **settings)
            else:
                results += [operation(tensor, **settings) for tensor in tensors]
        return results

    found = run(mode, both, *[many(hvd.rank(), dtype) for dtype in SCALED])
    for dtype, before, after in zip(SCALED, found, found[len(SCALED) :]):
        type_of = tf.as_dtype(dtype).as_numpy_dtype
        ranks = [many(rank, dtype) for rank in range(hvd.size())]
        firsts = sum(scaled(values, dtype).astype("float64") for values in ranks).astype(type_of)
        lasts = scaled(sum(values.astype("float64") for values in ranks), dtype)
        if "reducescatter" in kind:
            firsts, lasts = (numpy.array_split(each, hvd.size())[hvd.rank()] for each in (firsts, lasts))
        tolerance = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 1e-6}.get(dtype, 0.0)
        assert_same(before, firsts, tolerance)
        assert_same(after, lasts, tolerance)


@pytest.mark.parametrize("mode", MODES)
def test_scalars_and_empty_tensors(mode):
    scalar, empty = numpy.float32(hvd.rank() + 1), numpy.zeros((0, 3), "float32")

    def operations(one, nothing):
        return [
            hvd.allreduce(one, op=hvd.Sum),
            hvd.broadcast(one, 0),
            *hvd.grouped_allreduce([one, nothing], op=hvd.Max),
            hvd.allreduce(nothing),
            hvd.broadcast(nothing, 0),
        ]

    size = hvd.size()
    expected = [numpy.float32(size * (size + 1) / 2), numpy.float32(1), numpy.float32(size), empty, empty, empty]
    assert_same(run(mode, operations, scalar, empty), expected)


@pytest.mark.parametrize("mode", NOT_COMPILED)
def test_empty_tensors_that_are_moved(mode):
    size = hvd.size()
    without_columns = numpy.zeros((size, 0), "float32")

    def operations(rows, columns):
        return [
            hvd.allgather(rows),
            hvd.grouped_allgather([rows, columns])[1],
            hvd.alltoall(rows),
            hvd.alltoall(columns),
            hvd.alltoall(rows, [0] * size)[0],
            hvd.reducescatter(rows),
        ]

    found = run(mode, operations, numpy.zeros((0, 3), "float32"), without_columns)
    assert [each.shape for each in found] == [(0, 3), (size * size, 0), (0, 3), (size, 0), (0, 3), (0, 3)]


@pytest.mark.several_ranks
@pytest.mark.parametrize("mode", NOT_COMPILED)
def test_alltoall_among_half_of_the_ranks(mode):
    """The others neither send nor receive."""
    size, active = hvd.size(), range(hvd.size() // 2)
    takes_part = hvd.rank() in active
    splits = [int(takes_part and rank in active) for rank in range(size)]
    rows = numpy.full((sum(splits), 4), hvd.rank(), "int32")
    received, counts = run(mode, lambda x: hvd.alltoall(x, splits, name="half"), rows)
    assert counts.tolist() == splits and received.dtype == numpy.int32
    assert received.tolist() == ([[rank] * 4 for rank in active] if takes_part else [])
    assert received.shape == (sum(splits), 4)


GROUPS = {
    "grouped_allreduce": lambda tensors: hvd.grouped_allreduce(tensors, op=hvd.Sum),
    "grouped_allgather": hvd.grouped_allgather,
    "grouped_reducescatter": lambda tensors: hvd.grouped_reducescatter(tensors, op=hvd.Sum),
}


@pytest.mark.parametrize("kind", GROUPS)
@pytest.mark.parametrize("mode", NOT_COMPILED)
def test_gradients_of_the_results_of_a_group_one_by_one(mode, kind):
    """The others of the group have none, and are of another type."""
    size = hvd.size()
    dtypes = ["float32", "float64", "float32"]
    inputs = [mine((2 * size, 3), dtype) for dtype in dtypes]
    rows = 2 * size * (size if kind == "grouped_allgather" else 1) // (size if "scatter" in kind else 1)

    def differentiate(*tensors):
        upstream = [tf.ones((rows, 3), dtype) * (hvd.rank() + 1) for dtype in dtypes]
        if mode == "session":
            results = GROUPS[kind](tensors)
            return [tf.gradients(y, x, g)[0] for y, x, g in zip(results, tensors, upstream)]
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(tensors)
            results = GROUPS[kind](tensors)
        return [tape.gradient(y, x, g) for y, x, g in zip(results, tensors, upstream)]

    ranks = numpy.arange(1, size + 1)
    if kind == "grouped_reducescatter":
        expected = numpy.repeat(ranks, 2)[:, None] * size * numpy.ones((2 * size, 3))
    else:
        factor = ranks.sum() if kind == "grouped_allreduce" else ranks.mean()
        expected = numpy.full((2 * size, 3), factor)
    found = run(mode, differentiate, *inputs)
    assert_same(found, [expected.astype(dtype) for dtype in dtypes], 1e-6)


@pytest.mark.parametrize("mode", NOT_COMPILED)
def test_gradient_of_half_precision(mode):
    values = mine((2 * hvd.size(), 2), "float16")

    def differentiate(tensor):
        def function(x):
            return tf.cast(hvd.reducescatter(x, op=hvd.Average), tf.float16)

        if mode == "session":
            return tf.gradients(function(tensor), tensor)[0]
        with tf.GradientTape() as tape:
            tape.watch(tensor)
            result = function(tensor)
        return tape.gradient(result, tensor)

    assert_same(run(mode, differentiate, values), numpy.ones_like(values))


def pairs_reduced(one, other):
    """The adaptive sum of two vectors."""
    dot, first, second = (float((a * b).sum()) for a, b in ((one, other), (one, one), (other, other)))
    return (1 - dot / first / 2) * one + (1 - dot / second / 2) * other


def adaptive_sum(vectors):
    while len(vectors) > 1:
        vectors = [pairs_reduced(*vectors[i : i + 2]) for i in range(0, len(vectors), 2)]
    return vectors[0]


@pytest.mark.parametrize("mode", MODES)
def test_adasum_is_a_tree_of_pairs(mode):
    size = hvd.size()
    if size & (size - 1):
        pytest.skip("Horovod has it for powers of two only; others: tests/e2e and test_random_programs.py")
    random = numpy.random.RandomState(5)
    dtypes = ["float16", "float32", "float64"]
    everything = random.rand(2, size, 2, 2)
    own = [each[hvd.rank()].astype(dtype) for dtype in dtypes for each in everything]
    found = run(mode, lambda *tensors: [hvd.allreduce(tensor, op=hvd.Adasum) for tensor in tensors], *own)
    for number, result in enumerate(found):
        dtype = dtypes[number // 2]
        expected = adaptive_sum(list(everything[number % 2])).astype(dtype)
        assert_same(result, expected, {"float16": 5e-3, "float32": 1e-5, "float64": 1e-12}[dtype])


@pytest.mark.parametrize("kind", ["resources", "references"])
def test_broadcast_in_place_in_a_graph(kind):
    """The result has the variables' types and new values."""
    dtypes = ["uint8", "int8", "int32", "int64", "float16", "float32", "float64", "bool"]
    for root in range(hvd.size()):
        with tf.Graph().as_default(), v1.Session() as session:
            variables = [
                v1.get_variable(f"v{dtype}", initializer=mine((3, 2), dtype), use_resource=kind == "resources")
                for dtype in dtypes
            ]
            received = hvd.broadcast_(variables, root)
            assert [each.dtype.base_dtype.name for each in received] == dtypes
            session.run(v1.global_variables_initializer())
            expected = [of_rank(root, (3, 2), dtype) for dtype in dtypes]
            assert_same(session.run(received), expected)
            assert_same(session.run(variables), expected)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_partial_tape_in_a_graph(count):
    """The tape is persistent, and its gradients are requested twice."""

    def gradients(inputs):
        make = dict(kernel_initializer=tf.keras.initializers.Constant(hvd.rank() + 1.0))
        chain = [tf.keras.layers.Dense(2, **make), tf.keras.layers.Dense(1, **make)]
        with tf.GradientTape(persistent=True) as tape:
            loss = tf.reduce_mean(chain[1](chain[0](inputs)) ** 2)
        weights = [weight for layer in chain for weight in layer.trainable_weights]
        own = tape.gradient(loss, weights)
        wrapped = hvd.PartialDistributedGradientTape(tape, local_layers=chain[:count])
        found = wrapped.gradient(loss, weights)
        local, others = wrapped.get_local_and_global_gradients(loss, weights)
        assert [len(local), len(others)] == [2 * count, 4 - 2 * count]
        return own, found, [grad for _, grad in local + others]

    if not hasattr(tf.keras, "ops"):  # Keras 3 makes no variables in graphs
        own, found, again = in_session(gradients, mine((4, 3)))
    else:
        own, found, again = tf.nest.map_structure(lambda each: each.numpy(), gradients(tf.constant(mine((4, 3)))))
    assert_same(again, found, 1e-6)
    for place, (before, after) in enumerate(zip(own, found)):
        of_ranks = hvd.allgather_object(before)
        if place < 2 * count:
            assert_same(after, before / numpy.float32(hvd.size()), 1e-6)
        else:
            assert_same(after, numpy.mean(of_ranks, 0), 1e-5)


def test_ids_of_process_sets(dynamic):
    """They are the same on all ranks, and str() shows them. A removed set can be added again."""
    size = hvd.size()
    everyone = list(range(size))
    assert str(hvd.global_process_set) == f"ProcessSet(process_set_id=0, ranks={everyone}, mpi_comm=None)"
    assert not hvd.remove_process_set(hvd.global_process_set)
    with pytest.raises(ValueError):
        hvd.add_process_set(range(size))
    if size == 1:
        return
    with added([0]) as first, added(range(1, size)) as others:
        for process_set in (first, others):
            of_ranks = hvd.allgather(tf.constant([process_set.process_set_id])).numpy()
            assert (of_ranks == process_set.process_set_id).all()
        assert str(others) == f"ProcessSet(process_set_id={others.process_set_id}, ranks={everyone[1:]}, mpi_comm=None)"
        with pytest.raises(ValueError):
            hvd.add_process_set(everyone[:0:-1])
        assert hvd.remove_process_set(first) and first.process_set_id is None
        hvd.add_process_set(first)
        assert first.process_set_id is not None and first.included() == (hvd.rank() == 0)


@pytest.mark.parametrize("mode", MODES)
def test_operations_of_process_sets_of_all_types(mode, dynamic):
    """Those that XLA can have, compiled, too."""
    size = hvd.size()
    dtypes = ["uint8", "int8", "int32", "int64", "float16", "float32", "float64"]
    parts = [list(range(first, size, 2)) for first in (0, 1)] if size > 1 else [[]]
    with added(parts[0]) as evens, added(parts[-1]) as odds:
        process_set = (odds if hvd.rank() % 2 else evens) or hvd.global_process_set
        ranks = process_set.ranks

        def operations(*tensors):
            sums = [hvd.allreduce(tensor, op=hvd.Sum, process_set=process_set) for tensor in tensors]
            sums += hvd.grouped_allreduce(tensors, op=hvd.Sum, process_set=process_set)
            return sums, [hvd.broadcast(tensor, ranks[-1], process_set=process_set) for tensor in tensors]

        sums, received = run(mode, operations, *[mine((2, 3), dtype) for dtype in dtypes])
        expected = [of_all((2, 3), dtype)[ranks].sum(0).astype(dtype) for dtype in dtypes]
        assert_same(sums, expected * 2)
        assert_same(received, [of_rank(ranks[-1], (2, 3), dtype) for dtype in dtypes])
