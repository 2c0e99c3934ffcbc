"""Errors that all ranks get, after which the world stays usable. On any number of ranks."""

import numpy
import pytest
import tensorflow as tf

import horovod.tensorflow as hvd
from horovod.common.exceptions import HorovodInternalError, HorovodRequestError, translated
from tf_modes import MODES, NOT_COMPILED, added, assert_same, mine, reduced, run


def assert_usable(mode="eager"):
    total = run(mode, lambda tensor: hvd.allreduce(tensor, op=hvd.Sum, name="usable"), mine((2,)))
    assert_same(total, reduced("Sum", (2,)))


def shaped():
    return numpy.ones((2, 3 + hvd.rank()), "float32")


def of_other_rank():
    return numpy.ones((6,) if hvd.rank() == 0 else (2, 3), "float32")


def typed():
    return numpy.ones((2 * hvd.size(), 3), "int32" if hvd.rank() % 2 else "float32")


MISMATCHES = {
    "allreduce of other shapes": (hvd.allreduce, shaped),
    "allreduce of other ranks": (hvd.allreduce, of_other_rank),
    "allreduce of other types": (hvd.allreduce, typed),
    "allreduce by other reductions": (
        lambda x: hvd.allreduce(x, op=[hvd.Sum, hvd.Max][hvd.rank() % 2]),
        lambda: mine((3,)),
    ),
    "one of a group": (lambda x: hvd.grouped_allreduce([tf.ones(3), x]), shaped),
    "allgather of other shapes": (hvd.allgather, shaped),
    "allgather of other types": (hvd.allgather, typed),
    "grouped allgather": (lambda x: hvd.grouped_allgather([tf.ones(3), x]), shaped),
    "broadcast of other shapes": (lambda x: hvd.broadcast(x, 0), shaped),
    "broadcast of other types": (lambda x: hvd.broadcast(x, 0), typed),
    "broadcast from other roots": (lambda x: hvd.broadcast(x, hvd.rank()), lambda: mine((3,))),
    "alltoall of other shapes": (lambda x: hvd.alltoall(x, [0] * hvd.size()), shaped),
    "alltoall of other types": (hvd.alltoall, typed),
    "reducescatter of other shapes": (hvd.reducescatter, shaped),
    "reducescatter of other ranks": (hvd.reducescatter, of_other_rank),
    "reducescatter of other types": (hvd.reducescatter, typed),
}


@pytest.mark.several_ranks
@pytest.mark.parametrize("case", MISMATCHES)
def test_mismatch_is_an_error_on_all_ranks_and_the_world_continues(case):
    operation, make = MISMATCHES[case]
    for mode in NOT_COMPILED:
        # Horovod's class for it, which scripts catch.
        with pytest.raises(tf.errors.FailedPreconditionError, match="HorovodRequestError: ") as caught:
            run(mode, operation, make())
        error = translated(caught.value)
        assert type(error) is HorovodRequestError and "\n" not in str(error) and "[Op:" not in str(error)
        assert_usable(mode)


@pytest.mark.several_ranks
@pytest.mark.parametrize("case", ["allreduce of other shapes", "broadcast of other types"])
def test_mismatch_in_a_compiled_function(case):
    operation, make = MISMATCHES[case]
    with pytest.raises(tf.errors.OpError, match="HorovodRequestError: ") as caught:
        run("xla", operation, make())
    assert type(translated(caught.value)) is HorovodRequestError
    assert_usable("xla")


@pytest.mark.parametrize("mode", NOT_COMPILED)
def test_bad_splits_and_scalars(mode):
    size = hvd.size()
    refused = tf.errors.InvalidArgumentError  # as in Horovod, since the ranks agree
    with pytest.raises(refused):
        run(mode, lambda x: hvd.alltoall(x, [1] * (size + 1)), numpy.ones((size + 1, 2), "float32"))
    with pytest.raises(refused) as caught:
        run(mode, lambda x: hvd.alltoall(x, [1] * size), numpy.ones((size - 1, 2), "float32"))
    assert type(translated(caught.value)) is HorovodRequestError
    if size > 1:
        with pytest.raises(refused):
            run(mode, hvd.alltoall, numpy.ones((size + 1, 2), "float32"))
    refused = (tf.errors.InvalidArgumentError, tf.errors.FailedPreconditionError, ValueError)
    for scalar in (hvd.allgather, hvd.reducescatter, lambda x: hvd.grouped_reducescatter([tf.ones((2, 1)), x])):
        with pytest.raises(refused):
            run(mode, scalar, numpy.float32(3))
    assert_usable(mode)


@pytest.mark.several_ranks
@pytest.mark.parametrize("mode", NOT_COMPILED)
def test_rank_outside_of_the_process_set(mode, dynamic):
    parts = [list(range(first, hvd.size(), 2)) for first in (0, 1)]
    with added(parts[0]) as evens, added(parts[1]) as odds:
        others = evens if hvd.rank() % 2 else odds
        for operation in (hvd.allreduce, hvd.allgather, lambda x, **which: hvd.grouped_allreduce([x], **which)):
            with pytest.raises(tf.errors.InvalidArgumentError, match="is not in process set"):
                run(mode, lambda x, operation=operation: operation(x, process_set=others), mine((4,)))
        made_up = hvd.ProcessSet([0])
        made_up.process_set_id = 10_000  # of no set that there is
        with pytest.raises((tf.errors.InvalidArgumentError, ValueError), match=r"[Pp]rocess set"):
            run(mode, lambda x: hvd.allreduce(x, process_set=made_up), mine((4,)))
    assert_usable(mode)


@pytest.mark.parametrize("root", [-1, 99])
def test_root_that_is_not_a_rank(root):
    for mode in MODES:
        with pytest.raises((tf.errors.OpError, ValueError)):
            run(mode, lambda x: hvd.broadcast(x, root), mine((2,)))
    assert_usable()


def test_root_that_is_not_an_integer():
    for mode in MODES:
        with pytest.raises(TypeError, match=r"root_rank=0\.5 is not an integer"):
            run(mode, lambda x: hvd.broadcast(x, 0.5), mine((2,)))
    assert_usable()


def test_tensors_that_are_not_dense():
    ragged, sparse = tf.ragged.constant([[1.0], [2.0, 3.0]]), tf.sparse.from_dense([0.0, 1.0])
    for operation in (hvd.allreduce, hvd.allgather, hvd.reducescatter, hvd.alltoall, lambda x: hvd.broadcast(x, 0)):
        with pytest.raises(TypeError, match="takes dense tensors, got a RaggedTensor: use its flat_values"):
            operation(ragged)
        with pytest.raises(TypeError, match="takes dense tensors, got a SparseTensor: use its values"):
            operation(sparse)


def test_values_that_are_not_variables():
    for values, text in (
        ([tf.ones(2)], "one of EagerTensor"),
        ({"name": tf.Variable(1.0)}, "one of str"),
        (tf.Variable([1.0, 2.0]), "ResourceVariable"),
        (tf.keras.Sequential([tf.keras.layers.Dense(1)]), "Sequential: give its variables"),
        (5, "int"),
    ):
        with pytest.raises(TypeError, match=rf"broadcast_variables needs a list of tf\.Variables, got {text}"):
            hvd.broadcast_variables(values, root_rank=0)
        with pytest.raises(TypeError, match=rf"TensorFlowState needs a list of tf\.Variables, got {text}"):
            hvd.elastic.TensorFlowState(values)


def test_one_tensor_is_not_a_group():
    for operation in (hvd.grouped_allreduce, hvd.grouped_allgather, hvd.grouped_reducescatter):
        for value in (tf.ones((2, 2)), numpy.ones((2, 2)), tf.Variable([1.0]), 5):
            with pytest.raises(
                TypeError, match=rf"grouped operation needs a list of tensors, got {type(value).__name__}"
            ):
                operation(value)
    with pytest.raises(TypeError, match=r"grouped operation needs a list of tensors, got \w*Tensor"):
        tf.function(hvd.grouped_allreduce)(tf.ones(2))


def test_operations_before_init(monkeypatch):
    hvd.shutdown()
    try:
        for mode in ("eager", "function"):
            with pytest.raises((tf.errors.OpError, HorovodInternalError)) as caught:
                run(mode, hvd.allreduce, numpy.ones(2, "float32"))
            assert type(translated(caught.value)) is HorovodInternalError
            assert "has not been initialized" in str(caught.value)
    finally:
        hvd.init()
    assert_usable("function")


def test_only_errors_of_ours_are_translated():
    assert translated(ValueError("HorovodInternalError: no")) is None
    assert translated(tf.errors.UnknownError(None, None, "HorovodAllreduce")) is None
    lost = tf.errors.AbortedError(
        None, None, "in f\nHorovodInternalError: rank 1 left (code 10)\n\t [[{{node x}}]] [Op:__inference_f]"
    )
    error = translated(lost)
    assert str(error).endswith("rank 1 left") and error.code == 10 and error.caused_by_peer


def test_first_of_several_reports():
    reports = "HorovodInternalError: first (code 10)\n and HorovodInternalError: second (code 14)"
    error = translated(tf.errors.AbortedError(None, None, reports))
    assert str(error).endswith("first") and error.code == 10
