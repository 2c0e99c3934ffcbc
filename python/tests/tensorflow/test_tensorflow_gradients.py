"""Gradients of the operations, and reductions of tf.IndexedSlices. On any number of ranks."""

import numpy
import pytest
import tensorflow as tf

import horovod.tensorflow as hvd
from tf_modes import (
    DIMS,
    MODES,
    NOT_COMPILED,
    assert_same,
    mine,
    of_all,
    of_rank,
    own_set,
    reduced,
    run,
)

FLOATS = ["float32", "float64"]


def gradient_of(function, mode, *arrays):
    """The gradients of tensors, from the gradients of `function`'s results, which are the other half of
    the arrays."""

    def differentiate(*tensors):
        inputs, upstream = tensors[: len(tensors) // 2], list(tensors[len(tensors) // 2 :])
        if mode == "session":
            return tf.gradients(function(*inputs), inputs, upstream)
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            results = function(*inputs)
        return tape.gradient(results, inputs, upstream)

    return run(mode, differentiate, *arrays)


def kinds():
    return [(shape, dtype) for dtype in FLOATS for shape in DIMS]


def upstream(shape, dtype="float32", rank=None):
    return of_rank(hvd.rank() if rank is None else rank, shape, dtype) + 2


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("op", ["Sum", "Average"])
@pytest.mark.parametrize("mode", MODES)
def test_allreduce(mode, op, grouped):
    def reduce(*tensors):
        settings = dict(op=getattr(hvd, op), prescale_factor=2.0)
        if grouped:
            return list(hvd.grouped_allreduce(tensors, **settings))
        return [hvd.allreduce(tensor, **settings) for tensor in tensors]

    found = gradient_of(reduce, mode, *[mine(*kind) for kind in kinds()], *[upstream(*kind) for kind in kinds()])
    for (shape, dtype), grad in zip(kinds(), found):
        total = sum(upstream(shape, dtype, rank) for rank in range(hvd.size())) * 2
        assert_same(grad, (total if op == "Sum" else total / hvd.size()).astype(dtype), 1e-6)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("mode", NOT_COMPILED)
def test_allgather_has_the_average(mode, grouped):
    def gather(*tensors):
        return hvd.grouped_allgather(tensors) if grouped else [hvd.allgather(tensor) for tensor in tensors]

    rows = [rank + 1 for rank in range(hvd.size())]
    own = [of_rank(hvd.rank(), (rows[hvd.rank()], *shape[1:]), dtype) for shape, dtype in kinds()]
    whole = [[upstream((sum(rows), *shape[1:]), dtype, rank) for rank in range(hvd.size())] for shape, dtype in kinds()]
    found = gradient_of(gather, mode, *own, *[each[hvd.rank()] for each in whole])
    for all_ranks, grad in zip(whole, found):
        average = sum(all_ranks) / hvd.size()
        expected = numpy.split(average, numpy.cumsum(rows)[:-1])[hvd.rank()]
        assert_same(grad, expected.astype(grad.dtype), 1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_broadcast_has_the_average_at_the_root(mode):
    for root in range(hvd.size()):
        found = gradient_of(
            lambda *tensors, root=root: [hvd.broadcast(tensor, root) for tensor in tensors],
            mode,
            mine((3,)),
            upstream((3,)),
        )
        average = sum(upstream((3,), rank=rank) for rank in range(hvd.size())) / numpy.float32(hvd.size())
        assert_same(found[0], average if hvd.rank() == root else numpy.zeros(3, "float32"), 1e-6)


@pytest.mark.parametrize("evenly", [False, True])
@pytest.mark.parametrize("mode", NOT_COMPILED)
def test_alltoall_sends_gradients_back(mode, evenly):
    own, size = hvd.rank() + 1, hvd.size()

    def exchange(*tensors):
        if evenly:
            return [hvd.alltoall(tensor) for tensor in tensors]
        return [hvd.alltoall(tensor, [own] * size)[0] for tensor in tensors]

    received = sum(range(1, size + 1))
    shapes = [(own * size, *shape[1:]) for shape in DIMS]
    # Every rank has its number in what it sends back.
    grads = [numpy.full((received, *shape[1:]), hvd.rank(), "float32") for shape in DIMS]
    found = gradient_of(exchange, mode, *[mine(shape) for shape in shapes], *grads)
    for shape, grad in zip(shapes, found):
        expected = numpy.repeat(numpy.arange(size), own).reshape(-1, *[1] * (len(shape) - 1))
        assert_same(grad, numpy.broadcast_to(expected, shape).astype("float32"))


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("op", ["Sum", "Average"])
@pytest.mark.parametrize("mode", NOT_COMPILED)
def test_reducescatter_gathers(mode, op, grouped):
    size = hvd.size()

    def scatter(*tensors):
        settings = dict(op=getattr(hvd, op), postscale_factor=0.5)
        if grouped:
            return hvd.grouped_reducescatter(tensors, **settings)
        return [hvd.reducescatter(tensor, **settings) for tensor in tensors]

    shapes = [(4 * size, *shape[1:]) for shape in DIMS]
    parts = [(4, *shape[1:]) for shape in DIMS]
    found = gradient_of(scatter, mode, *[mine(shape) for shape in shapes], *[upstream(part) for part in parts])
    for part, grad in zip(parts, found):
        gathered = numpy.concatenate([upstream(part, rank=rank) for rank in range(size)])
        assert_same(grad, gathered * numpy.float32(0.5 * (size if op == "Sum" else 1)), 1e-6)


@pytest.mark.parametrize("mode", NOT_COMPILED)
def test_gradients_within_a_process_set(mode, dynamic):
    with own_set() as process_set:
        ranks, size = process_set.ranks, process_set.size()
        shape = (size, 2)

        def operations(tensor):
            return [
                hvd.allreduce(tensor, op=hvd.Sum, process_set=process_set),
                hvd.broadcast(tensor, ranks[0], process_set=process_set),
                hvd.reducescatter(tensor, op=hvd.Sum, process_set=process_set),
                hvd.allgather(tensor, process_set=process_set),
                hvd.alltoall(tensor, process_set=process_set),
            ]

        def sums(tensor):
            return [tf.reduce_sum(result) * (hvd.rank() + 1.0) for result in operations(tensor)]

        def differentiate(tensor):
            if mode == "session":
                return [tf.gradients(each, tensor)[0] for each in sums(tensor)]
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(tensor)
                targets = sums(tensor)
            return [tape.gradient(target, tensor) for target in targets]

        found = run(mode, differentiate, mine(shape))
        weights = numpy.array([rank + 1 for rank in ranks], "float32")
        ones = numpy.ones(shape, "float32")
        average = weights.mean()
        expected = [
            ones * weights.sum(),
            ones * (average if hvd.rank() == ranks[0] else 0),
            ones * weights[:, None] * size,
            ones * average,
            ones * weights[:, None],
        ]
        assert_same(found, [each.astype("float32") for each in expected], 1e-6)


def slices(rank, dtype="float32", shape=(2, 3)):
    """Returns two slices of each rank; the second has the index of the next rank's first."""
    values = of_rank(rank, (2, *shape[1:]), dtype)
    return values, numpy.array([rank, rank + 1])


def dense(values, indices, rows):
    result = numpy.zeros((rows, *values.shape[1:]), "float64")
    for index, value in zip(indices, values.astype("float64")):
        result[index] += value
    return result


@pytest.mark.parametrize("op", ["Sum", "Average"])
@pytest.mark.parametrize("mode", NOT_COMPILED)
def test_indexed_slices(mode, op):
    rows = hvd.size() + 1
    dtypes = ["float16", "bfloat16", "float32", "float64"] + (["uint8", "int32", "int64"] if op == "Sum" else [])
    own = [each for dtype in dtypes for each in slices(hvd.rank(), dtype)]

    def reduce(*tensors):
        sparse = [tf.IndexedSlices(*tensors[i : i + 2], tf.constant([rows, 3])) for i in range(0, len(tensors), 2)]
        alone = [hvd.allreduce(each, op=getattr(hvd, op), name=f"own{i}") for i, each in enumerate(sparse)]
        whole = [tensors[0], *sparse, tensors[0]]
        grouped = hvd.grouped_allreduce(whole, op=getattr(hvd, op))
        assert all(isinstance(each, tf.IndexedSlices) for each in (*alone, *grouped[1:-1]))
        return [[(each.values, each.indices) for each in part] for part in (alone, grouped[1:-1])], grouped[
            :: len(whole) - 1
        ]

    (alone, grouped), around = run(mode, reduce, *own)
    share = 1 if op == "Sum" else hvd.size()
    for dtype, one, other in zip(dtypes, alone, grouped):
        expected = sum(dense(*slices(rank, dtype), rows) for rank in range(hvd.size())) / share
        for values, indices in (one, other):
            assert values.dtype == tf.as_dtype(dtype).as_numpy_dtype
            assert_same(dense(values, indices, rows), expected, 2e-2 if "16" in dtype else 1e-6)
    assert_same(around, [reduced(op, (2, 3), "float16")] * 2, 1e-3)


def test_average_of_whole_slices_is_a_fraction():
    whole = tf.IndexedSlices(tf.constant([[hvd.rank()]], tf.int32), tf.constant([0]))
    result = hvd.allreduce(whole)
    assert result.values.dtype == tf.float64
    assert_same(result.values.numpy(), (of_all_numbers() / hvd.size()).reshape(-1, 1))


def of_all_numbers():
    return numpy.arange(hvd.size(), dtype="float64")


@pytest.mark.parametrize("op", [hvd.Min, hvd.Max, hvd.Product, hvd.Adasum])
def test_what_slices_can_not_be_reduced_by(op):
    sparse = tf.IndexedSlices(tf.ones((1, 3)), tf.constant([0]))
    for arguments in (sparse, [sparse], [sparse, tf.ones(3)]):
        function = hvd.allreduce if arguments is sparse else hvd.grouped_allreduce
        with pytest.raises(NotImplementedError, match="IndexedSlices"):
            function(arguments, op=op)
        for factor in ({"prescale_factor": 0.5}, {"postscale_factor": 0.5}):
            with pytest.raises(NotImplementedError, match="without prescale_factor and postscale_factor"):
                function(arguments, op=hvd.Sum, **factor)


@pytest.mark.parametrize("mode", MODES)
def test_compression(mode):
    dtypes = ["float16", "float32", "float64", "int32", "uint8"]

    def reduce(*tensors):
        settings = dict(op=hvd.Sum, compression=hvd.Compression.fp16)
        alone = [hvd.allreduce(tensor, **settings) for tensor in tensors]
        return alone + list(hvd.grouped_allreduce(tensors, **settings))

    results = run(mode, reduce, *[mine((3,), dtype) for dtype in dtypes])
    for dtype, result in zip(dtypes * 2, results):
        assert_same(result, reduced("Sum", (3,), dtype))
    if mode != "xla":
        scattered = run(
            mode, lambda x: hvd.reducescatter(x, compression=hvd.Compression.fp16, op=hvd.Sum), mine((hvd.size(),))
        )
        assert_same(scattered, reduced("Sum", (hvd.size(),))[hvd.rank() : hvd.rank() + 1])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "uint8", "int8", "int64", "bool"])
def test_compressors(dtype):
    tensor = tf.ones((2, 3), dtype)
    for compression, kind in ((hvd.Compression.none, dtype), (hvd.Compression.fp16, "float16")):
        compressed, context = compression.compress(tensor)
        assert compressed.dtype == (kind if dtype in ("float32", "float64") else dtype)
        restored = compression.decompress(compressed, context)
        assert restored.dtype == dtype and bool(tf.reduce_all(restored == tensor))


def test_compression_is_what_is_sent():
    """0.1 is not a number of float16."""
    total = hvd.allreduce(tf.constant([0.1]), op=hvd.Max, compression=hvd.Compression.fp16)
    assert total.numpy() == numpy.float16(0.1)
    assert of_all((1,)).shape == (hvd.size(), 1)


def test_compiled_gradient_of_broadcast_is_refused_in_elastic_jobs(monkeypatch):
    """XLA would compile the rank in, which may be another one in the next world."""
    monkeypatch.setenv("HOROVOD_ELASTIC", "1")

    @tf.function(jit_compile=True)
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = hvd.broadcast(x, 0)
        return tape.gradient(y, x)

    with pytest.raises(Exception, match="use jit_compile=False"):  # AutoGraph may wrap it
        gradient(tf.constant(mine((2,))))
