"""Cases of Horovod's own tests that no other file here has; python/tests/data/horovods_cases.md says where all
of them are. On any number of ranks."""

import mxnet as mx
import numpy
import pytest
from mxnet import gluon

import horovod.mxnet as hvd

FACTOR = 0.1915194503788923  # no sum of powers of two


def of_shape(*shape):
    return lambda: mx.nd.ones(shape)


def other_shapes():
    return mx.nd.ones((2 * hvd.size(), 1 + hvd.rank()))


def other_ranks():
    return mx.nd.ones((6,) if hvd.rank() == 0 else (2, 3))


def other_types():
    return mx.nd.ones((2 * hvd.size(), 3), dtype="int32" if hvd.rank() % 2 else "float32")


MISMATCHES = {
    "allreduce": (hvd.allreduce, [other_shapes, other_ranks, other_types]),
    "grouped_allreduce": (lambda x: hvd.grouped_allreduce([mx.nd.ones(3), x]), [other_shapes]),
    "allgather": (hvd.allgather, [other_shapes, other_types]),
    "broadcast": (lambda x: hvd.broadcast(x, 0), [other_shapes, other_types]),
    "broadcast from other roots": (lambda x: hvd.broadcast(x, hvd.rank()), [of_shape(3)]),
    "alltoall": (hvd.alltoall, [other_shapes, other_types]),
    "reducescatter": (hvd.reducescatter, [other_shapes, other_ranks, other_types]),
}


@pytest.mark.several_ranks
@pytest.mark.parametrize("case", MISMATCHES)
def test_mismatches(case):
    """All ranks raise a RuntimeError, as in Horovod; the world stays usable."""
    operation, makers = MISMATCHES[case]
    for make in makers:
        with pytest.raises(RuntimeError, match="Mismatched"):
            operation(make())
        assert hvd.allreduce(mx.nd.ones(1), op=hvd.Sum).asscalar() == hvd.size()


def test_scalars_can_not_be_scattered():
    scalar = mx.nd.array(hvd.rank(), dtype="float32")
    for operation in (
        lambda: hvd.reducescatter(scalar, op=hvd.Average),
        lambda: hvd.grouped_reducescatter([mx.nd.zeros((3, 1)), scalar], op=hvd.Average),
    ):
        with pytest.raises(ValueError, match="does not support scalar"):
            operation()


@pytest.mark.parametrize("kind", ["allreduce", "reducescatter", "grouped_reducescatter"])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float16", "float32", "float64"])
def test_factors_that_round(kind, dtype):
    """Integers are multiplied as float64 and rounded towards zero, half precision as float32."""
    wide = {"float16": "float32", "float32": "float32"}.get(dtype, "float64")
    values = (numpy.arange(8 * hvd.size()) - 9).astype(dtype)
    factor = numpy.dtype(wide).type(FACTOR)
    before = (values.astype(wide) * factor).astype(dtype) * hvd.size()
    after = ((values * hvd.size()).astype(wide) * factor).astype(dtype)
    for name, expected in (("prescale_factor", before), ("postscale_factor", after)):
        array = mx.nd.array(values, dtype=dtype)
        if kind == "grouped_reducescatter":
            (result,) = hvd.grouped_reducescatter([array], op=hvd.Sum, **{name: FACTOR})
        else:
            result = getattr(hvd, kind)(array, op=hvd.Sum, **{name: FACTOR})
        if kind != "allreduce":
            expected = numpy.split(expected, hvd.size())[hvd.rank()]
        assert numpy.dtype(result.dtype) == dtype
        tolerance = {"float16": 1e-2, "float32": 1e-6}.get(dtype, 0)
        numpy.testing.assert_allclose(result.asnumpy(), expected.astype(dtype), rtol=tolerance)


def test_array_with_one_owner():
    for factor in (1, 2, 3):
        total = hvd.allreduce(mx.nd.ones((17, 17)) * factor, op=hvd.Sum)
        assert (total.asnumpy() == factor * hvd.size()).all()


@pytest.mark.several_ranks
def test_operations_of_a_process_set(monkeypatch):
    monkeypatch.setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1")
    parts = [list(range(first, hvd.size(), 2)) for first in (0, 1)]
    sets = [hvd.add_process_set(part) for part in parts]
    own = sets[hvd.rank() % 2]
    ranks, size, place = own.ranks, own.size(), own.rank()
    array = mx.nd.ones((2 * size, 2)) * hvd.rank()
    found = [
        hvd.allreduce(array, op=hvd.Sum, process_set=own),
        hvd.grouped_allreduce([array] * 2, op=hvd.Sum, process_set=own)[1],
        hvd.allgather(array, process_set=own),
        hvd.grouped_allgather([array] * 2, process_set=own)[1],
        hvd.broadcast(array, ranks[-1], process_set=own),
        hvd.alltoall(array, [2] * size, process_set=own)[0],
        hvd.reducescatter(array, op=hvd.Sum, process_set=own),
        hvd.grouped_reducescatter([array] * 2, op=hvd.Sum, process_set=own)[1],
    ]
    rows = numpy.repeat(ranks, 2)
    expected = [[sum(ranks)] * 2 * size] * 2 + [numpy.repeat(ranks, 2 * size)] * 2
    expected += [[ranks[-1]] * 2 * size, rows, [sum(ranks)] * 2, [sum(ranks)] * 2]
    for result, values in zip(found, expected):
        assert result.asnumpy().tolist() == [[value] * 2 for value in values]
    assert 0 <= place < size
    for process_set in sets:
        assert hvd.remove_process_set(process_set)


def test_two_trainers():
    """Their prefixes distinguish them."""
    nets = [gluon.nn.Dense(units, in_units=10) for units in (20, 30)]
    trainers = []
    for number, net in enumerate(nets):
        mx.random.seed(1 + hvd.rank())
        net.initialize(mx.init.Uniform())
        params, prefix = net.collect_params(), f"net{number}"
        hvd.broadcast_parameters(params, prefix=prefix)
        trainers.append(hvd.DistributedTrainer(params, "sgd", {"learning_rate": 0.1}, prefix=prefix))
    for _ in range(3):
        with mx.autograd.record():
            sums = [net(mx.nd.ones((5, 10)) * (hvd.rank() + 1)).sum() for net in nets]
        mx.autograd.backward(sums)
        for trainer in trainers:
            trainer.step(1.0)
    for net in nets:
        of_ranks = hvd.allgather_object(net.weight.data().asnumpy())
        assert all(numpy.array_equal(each, of_ranks[0]) for each in of_ranks)
