"""The collective operations against numpy, however TensorFlow runs them. On any number of ranks."""

import numpy
import pytest
import tensorflow as tf

import horovod.tensorflow as hvd
from horovod.common.exceptions import HorovodRequestError
from tf_modes import (
    DIMS,
    MODES,
    NOT_COMPILED,
    REDUCED,
    REDUCTIONS,
    assert_same,
    mine,
    of_all,
    of_rank,
    own_set,
    reduced,
    run,
)

ALL = [(shape, dtype) for dtype in REDUCED for shape in DIMS]
FLOATS = ["float16", "float32", "float64"]
MOVED = [*REDUCED, "uint16", "bool"]


def near(dtype):
    """How exact averages are."""
    return {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-6}.get(dtype, 0.0)


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("mode", MODES)
def test_allreduce(mode, op):
    def reduce(*tensors):
        return [hvd.allreduce(tensor, op=getattr(hvd, op)) for tensor in tensors]

    results = run(mode, reduce, *[mine(*kind) for kind in ALL])
    for (shape, dtype), result in zip(ALL, results):
        assert_same(result, reduced(op, shape, dtype), near(dtype))


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("mode", MODES)
def test_grouped_allreduce_of_all_types(mode, op):
    def reduce(*tensors):
        return hvd.grouped_allreduce(tensors, op=getattr(hvd, op))

    results = run(mode, reduce, *[mine(*kind) for kind in ALL])
    for (shape, dtype), result in zip(ALL, results):
        assert_same(result, reduced(op, shape, dtype), near(dtype))


@pytest.mark.parametrize("mode", MODES)
def test_allreduce_of_truth_values(mode):
    is_first = numpy.array([hvd.rank() == 0, True, False])

    def reduce(tensor):
        return [hvd.allreduce(tensor, op=op) for op in (hvd.Max, hvd.Min)]

    largest, smallest = run(mode, reduce, is_first)
    assert largest.tolist() == [True, True, False]
    assert smallest.tolist() == [hvd.size() == 1, True, False]


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_allreduce_scaled(mode, grouped):
    kinds = [((3, 2), dtype) for dtype in (*FLOATS, "int32", "int64")]

    def scaled(*tensors, **factors):
        if grouped:
            return list(hvd.grouped_allreduce(tensors, op=hvd.Sum, **factors))
        return [hvd.allreduce(tensor, op=hvd.Sum, **factors) for tensor in tensors]

    def both(*tensors):
        return scaled(*tensors, prescale_factor=0.5) + scaled(*tensors, postscale_factor=0.5)

    results = run(mode, both, *[mine(*kind) for kind in kinds])
    for (shape, dtype), before, after in zip(kinds, results, results[len(kinds) :]):
        values = of_all(shape, dtype)
        if dtype.startswith("int"):
            assert_same(before, numpy.trunc(values * 0.5).sum(0).astype(dtype))
            assert_same(after, numpy.trunc(values.sum(0) * 0.5).astype(dtype))
        else:
            assert_same(before, (values.sum(0) * 0.5).astype(dtype), near(dtype))
            assert_same(after, before)


def test_average_is_an_older_argument():
    with pytest.warns(DeprecationWarning, match="`average` is deprecated"):
        assert_same(hvd.allreduce(mine((3,)), average=False), reduced("Sum", (3,)))
    with pytest.warns(DeprecationWarning):
        assert_same(hvd.grouped_allreduce([mine((3,))], average=True)[0], reduced("Average", (3,)), 1e-6)
    with pytest.raises(ValueError, match="op replaces average"):
        hvd.allreduce(mine((3,)), average=True, op=hvd.Sum)
    assert hvd.handle_average_backwards_compatibility(None, None) == hvd.Average
    with pytest.raises(ValueError):
        hvd.allreduce(mine((3,)), op=17)


def test_groups_of_nothing_are_returned():
    for function in (hvd.grouped_allreduce, hvd.grouped_reducescatter):
        assert function([]) == []


def test_arguments_may_be_variables_arrays_and_lists():
    total = reduced("Sum", (3,))
    for given in (tf.Variable(mine((3,))), mine((3,)), mine((3,)).tolist()):
        assert_same(hvd.allreduce(given, op=hvd.Sum, device_dense="/cpu:0"), total)


@pytest.mark.parametrize("mode", MODES)
def test_adasum_of_equal_tensors_is_the_tensor(mode):
    values = [numpy.array([1.0, -2.0, 4.0], dtype) for dtype in FLOATS]

    def reduce(*tensors):
        return [*hvd.grouped_allreduce(tensors, op=hvd.Adasum), hvd.allreduce(tensors[1], op=hvd.Adasum)]

    for found, expected in zip(run(mode, reduce, *values), [*values, values[1]]):
        assert_same(found, expected, 1e-3)


COMPLEX = [(shape, dtype) for dtype in ("complex64", "complex128") for shape in ((), *DIMS)]


def complex_of(rank, shape, dtype):
    return (of_rank(rank, shape) * (1 + rank) + 1j * of_rank(rank + 1, shape)).astype(dtype)


@pytest.mark.parametrize("mode", MODES)
def test_allreduce_and_broadcast_of_complex_tensors(mode):
    def reduce(*tensors):
        totals = [hvd.allreduce(tensor, op=hvd.Sum) for tensor in tensors]
        averages = list(hvd.grouped_allreduce(tensors, op=hvd.Average))
        return totals, averages, [hvd.broadcast(tensor, 0) for tensor in tensors]

    totals, averages, sent = run(mode, reduce, *[complex_of(hvd.rank(), *kind) for kind in COMPLEX])
    for i, kind in enumerate(COMPLEX):
        total = numpy.sum([complex_of(rank, *kind) for rank in range(hvd.size())], axis=0)
        assert_same(totals[i], total)
        assert_same(averages[i], (total / hvd.size()).astype(kind[1]), 1e-6)
        assert_same(sent[i], complex_of(0, *kind))


@pytest.mark.parametrize("mode", NOT_COMPILED)
def test_rows_of_complex_tensors(mode):
    kinds = [((hvd.size(), 2), dtype) for dtype in ("complex64", "complex128")]

    def move(*tensors):
        return [
            [hvd.allgather(tensor), hvd.alltoall(tensor), hvd.reducescatter(tensor, op=hvd.Sum)] for tensor in tensors
        ]

    results = run(mode, move, *[complex_of(hvd.rank(), *kind) for kind in kinds])
    for kind, (gathered, exchanged, scattered) in zip(kinds, results):
        every = [complex_of(rank, *kind) for rank in range(hvd.size())]
        own = slice(hvd.rank(), hvd.rank() + 1)
        assert_same(gathered, numpy.concatenate(every))
        assert_same(exchanged, numpy.concatenate([each[own] for each in every]))
        assert_same(scattered, sum(every)[own])


def test_the_gradient_of_a_complex_sum_is_that_of_one_process():
    every = [tf.Variable(complex_of(rank, (3,), "complex128")) for rank in range(hvd.size())]
    own, weight = every[hvd.rank()], tf.constant([1j, 2.0, 1 - 1j], tf.complex128)
    with tf.GradientTape(persistent=True) as tape:
        found = tf.reduce_sum(tf.abs(hvd.allreduce(own, op=hvd.Sum) * weight))
        alone = tf.reduce_sum(tf.abs(tf.add_n(every) * weight))
    assert_same(tape.gradient(found, own), tape.gradient(alone, own).numpy() * hvd.size(), 1e-9)


@pytest.mark.parametrize("op", ["Adasum", "Max", "Min", "Product"])
def test_complex_tensors_are_not_reduced_otherwise(op):
    tensor = tf.constant([1j])
    for reduce in (hvd.allreduce, lambda tensor, op: hvd.grouped_allreduce([tensor], op=op), hvd.reducescatter):
        with pytest.raises(
            ValueError, match=rf"complex128 can be reduced by hvd\.Sum and hvd\.Average, not by hvd\.{op}$"
        ):
            reduce(tensor, op=getattr(hvd, op))
    for operation in (hvd.allgather, hvd.alltoall, hvd.reducescatter):
        with pytest.raises(ValueError, match="at least one dimension, got a complex scalar"):
            operation(tensor[0])


@pytest.mark.several_ranks
def test_adasum_of_orthogonal_tensors_is_their_sum():
    own = numpy.eye(hvd.size(), dtype="float64")[hvd.rank()]
    assert_same(hvd.allreduce(own, op=hvd.Adasum), numpy.ones(hvd.size()), 1e-12)


@pytest.mark.parametrize("mode", NOT_COMPILED)
def test_allgather_of_different_lengths(mode):
    def gather(*tensors):
        return [hvd.allgather(tensor) for tensor in tensors]

    kinds = [(shape, dtype) for dtype in MOVED for shape in DIMS]
    results = run(mode, gather, *[rows_of(hvd.rank(), *kind) for kind in kinds])
    for kind, result in zip(kinds, results):
        assert_same(result, numpy.concatenate([rows_of(rank, *kind) for rank in range(hvd.size())]))


def rows_of(rank, shape, dtype):
    """Returns as many rows as the rank's number; rank 0 has none."""
    return of_rank(rank, (rank, *shape[1:]), dtype)


@pytest.mark.parametrize("mode", NOT_COMPILED)
def test_grouped_allgather_of_all_types(mode):
    kinds = [(shape, dtype) for dtype in MOVED for shape in DIMS]
    results = run(
        mode, lambda *tensors: hvd.grouped_allgather(tensors), *[rows_of(hvd.rank(), *kind) for kind in kinds]
    )
    for kind, result in zip(kinds, results):
        assert_same(result, numpy.concatenate([rows_of(rank, *kind) for rank in range(hvd.size())]))


def test_static_shapes():
    @tf.function
    def traced(tensor):
        assert hvd.allgather(tensor).shape.as_list() == [None, 3]
        assert hvd.reducescatter(tensor).shape.as_list() == [None, 3]
        rows, splits = hvd.alltoall(tensor, [1] * hvd.size())
        assert rows.shape.as_list() == [None, 3] and splits.shape.rank == 1
        assert hvd.allreduce(tensor).shape == tensor.shape
        assert hvd.broadcast(tensor, 0).shape == tensor.shape
        return tensor

    traced(tf.ones((hvd.size(), 3)))


@pytest.mark.parametrize("mode", MODES)
def test_broadcast_from_every_root(mode):
    dtypes = REDUCED if mode == "xla" else MOVED
    kinds = [(shape, dtype) for dtype in dtypes for shape in DIMS]

    def receive(*tensors):
        return [hvd.broadcast(tensor, root) for root in range(hvd.size()) for tensor in tensors]

    results = run(mode, receive, *[mine(*kind) for kind in kinds])
    for number, result in enumerate(results):
        root, place = divmod(number, len(kinds))
        assert_same(result, of_rank(root, *kinds[place]))


@pytest.mark.parametrize("mode", NOT_COMPILED)
def test_alltoall_by_splits_and_evenly(mode):
    """Rank r sends r + 1 rows to each rank; the rows name their receiver."""
    own, size = hvd.rank() + 1, hvd.size()
    dtypes = [dtype for dtype in MOVED if dtype != "bool"]

    def sent(*tensors):
        by_splits = [hvd.alltoall(tensor, tf.fill([size], own)) for tensor in tensors]
        return by_splits, [hvd.alltoall(tensor) for tensor in tensors]

    rows = numpy.repeat(numpy.arange(size), own)
    tensors = [
        numpy.broadcast_to(rows.reshape(-1, *[1] * (len(shape) - 1)), (len(rows), *shape[1:])).astype(
            tf.as_dtype(dtype).as_numpy_dtype
        )
        for dtype in dtypes
        for shape in DIMS
    ]
    by_splits, evenly = run(mode, sent, *tensors)
    for tensor, (received, splits), same in zip(tensors, by_splits, evenly):
        assert splits.tolist() == list(range(1, size + 1))
        assert_same(received, numpy.full_like(tensor, hvd.rank(), shape=(sum(splits), *tensor.shape[1:])))
        assert_same(same, received)


@pytest.mark.parametrize("mode", NOT_COMPILED)
def test_alltoall_of_nothing(mode):
    assert run(mode, hvd.alltoall, numpy.zeros((0, 2), "float32")).shape == (0, 2)


@pytest.mark.parametrize("silent", ["sends", "receives", "both"])
@pytest.mark.parametrize("mode", NOT_COMPILED)
def test_alltoall_with_a_rank_that_sends_or_receives_nothing(mode, silent):
    last, size = hvd.size() - 1, hvd.size()

    def counts(rank):
        sends = silent == "receives" or rank != last
        return [int(sends and not (other == last and silent != "sends")) for other in range(size)]

    own = counts(hvd.rank())
    tensor = numpy.full((sum(own), 2), hvd.rank(), "int32")
    received, splits = run(mode, lambda rows: hvd.alltoall(rows, own), tensor)
    expected = [counts(rank)[hvd.rank()] for rank in range(size)]
    assert splits.tolist() == expected
    assert received.tolist() == [[rank, rank] for rank in range(size) if expected[rank]]


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("op", ["Sum", "Average", "Max"])
@pytest.mark.parametrize("mode", NOT_COMPILED)
def test_reducescatter_even_and_uneven(mode, op, grouped):
    size = hvd.size()
    shapes = [(4 * size,), (4 * size + size // 2, 2), (2 * size, 2, 3)]
    kinds = [(shape, dtype) for dtype in REDUCED for shape in shapes]

    def scatter(*tensors):
        if grouped:
            return hvd.grouped_reducescatter(tensors, op=getattr(hvd, op))
        return [hvd.reducescatter(tensor, op=getattr(hvd, op)) for tensor in tensors]

    results = run(mode, scatter, *[mine(*kind) for kind in kinds])
    for (shape, dtype), result in zip(kinds, results):
        assert_same(result, own_rows(reduced(op, shape, dtype)), near(dtype))


def own_rows(whole):
    """This rank's; the first ranks have one more if they can't be equal."""
    return numpy.array_split(whole, hvd.size())[hvd.rank()]


@pytest.mark.parametrize("mode", NOT_COMPILED)
def test_reducescatter_scaled(mode):
    shape = (2 * hvd.size(), 3)

    def scatter(tensor):
        fields = [dict(prescale_factor=0.5), dict(postscale_factor=0.5)]
        single = [hvd.reducescatter(tensor, op=hvd.Sum, **each) for each in fields]
        return single, [hvd.grouped_reducescatter([tensor], op=hvd.Sum, **each)[0] for each in fields]

    expected = own_rows(reduced("Sum", shape) * numpy.float32(0.5))
    assert_same(run(mode, scatter, mine(shape)), [[expected] * 2] * 2)


@pytest.mark.parametrize("mode", NOT_COMPILED)
def test_operations_of_process_sets(mode, dynamic):
    with own_set() as process_set:
        ranks, number, size = process_set.ranks, process_set.rank(), process_set.size()
        shape = (size, 2)

        def all_of_them(tensor):
            return [
                hvd.allreduce(tensor, op=hvd.Sum, process_set=process_set),
                hvd.grouped_allreduce([tensor], process_set=process_set)[0],
                hvd.allgather(tensor, process_set=process_set),
                hvd.grouped_allgather([tensor], process_set=process_set)[0],
                hvd.broadcast(tensor, ranks[-1], process_set=process_set),
                hvd.alltoall(tensor, [1] * size, process_set=process_set)[0],
                hvd.reducescatter(tensor, process_set=process_set),
                hvd.grouped_reducescatter([tensor], op=hvd.Sum, process_set=process_set)[0],
                hvd.size_op(process_set.process_set_id),
                hvd.process_set_included_op(process_set.process_set_id),
            ]

        found = run(mode, all_of_them, mine(shape))
        total, average = (reduced(op, shape, ranks=ranks) for op in ("Sum", "Average"))
        everything = numpy.concatenate([of_rank(rank, shape) for rank in ranks])
        assert_same(found[0], total)
        assert_same(found[1], average, 1e-6)
        assert_same(found[2:4], [everything] * 2)
        assert_same(found[4], of_rank(ranks[-1], shape))
        assert_same(found[5], numpy.stack([of_rank(rank, shape)[number] for rank in ranks]))
        assert_same(found[6], average[number : number + 1], 1e-6)
        assert_same(found[7], total[number : number + 1])
        assert found[8:] == [size, 1]


def test_process_sets_that_are_not_registered():
    stranger = hvd.ProcessSet([0])
    with pytest.raises(TypeError, match="is not registered"):
        hvd.allreduce(tf.ones(2), process_set=stranger)
    with pytest.raises(TypeError, match="is not registered"):
        hvd.DistributedGradientTape(tf.GradientTape(), process_set=stranger)


@pytest.mark.parametrize("mode", NOT_COMPILED)
def test_ranks_and_sizes(mode):
    queries = [hvd.rank_op, hvd.size_op, hvd.local_rank_op, hvd.local_size_op, hvd.process_set_included_op]
    found = run(mode, lambda: [query() for query in queries])
    assert found == [hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), 1]
    assert all(each.dtype == numpy.int32 and each.shape == () for each in found)


def test_mpi_ops_has_the_names_of_the_package():
    """Scripts import them from there, too."""
    names = """
        init shutdown is_initialized start_timeline stop_timeline size local_size cross_size rank local_rank cross_rank
        mpi_threads_supported mpi_enabled mpi_built gloo_enabled gloo_built nccl_built ddl_built ccl_built cuda_built rocm_built
        Average Sum Adasum Min Max Product is_homogeneous handle_average_backwards_compatibility check_num_rank_power_of_2
        ProcessSet global_process_set add_process_set remove_process_set
        size_op process_set_included_op local_size_op rank_op local_rank_op
        allgather grouped_allgather broadcast broadcast_ alltoall join
        _allreduce _grouped_allreduce _reducescatter _grouped_reducescatter
    """
    assert [name for name in names.split() if getattr(hvd.mpi_ops, name, None) is not getattr(hvd, name)] == []
    assert hvd._allreduce(tf.ones(2)).numpy().tolist() == [hvd.size()] * 2


@pytest.mark.parametrize("mode", NOT_COMPILED)
def test_join_stands_in_with_zeros(mode):
    """Each rank has more to reduce than the one before it."""
    for number in range(hvd.rank()):
        total = run(
            mode, lambda tensor, number=number: hvd.allreduce(tensor, op=hvd.Sum, name=f"late{number}"), mine((2,))
        )
        assert_same(total, numpy.sum([of_rank(rank, (2,)) for rank in range(number + 1, hvd.size())], 0))
    last = run(mode, hvd.join)
    assert hvd.allgather_object(int(last)) == [hvd.size() - 1] * hvd.size()


def test_xla_has_no_place_for_results_of_unknown_size():
    for name in ("allgather", "alltoall", "reducescatter"):
        with pytest.raises(HorovodRequestError, match="can't be compiled by XLA: only allreduce"):
            run("xla", getattr(hvd, name), mine((hvd.size(), 2)))
