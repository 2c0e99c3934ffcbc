"""The gradients of Horovod's operations, which TensorFlow looks up by the operations' names. As in Horovod, a gradient that is
gathered from all ranks is averaged over them.
"""

from typing import Any

from horovod.common.ops import Average, Sum
from horovod.tensorflow import _queries
from horovod.tensorflow._library import functions, tf
from horovod.tensorflow.util import gradient_name


def _name(op: Any) -> str:
    return gradient_name(op.get_attr("tensor_name").decode())


def _allreduced(op: Any, grads: tuple[Any, ...], **fields: Any) -> list[Any]:
    process_set = op.get_attr("process_set")
    return list(functions.horovod_allreduce(list(grads), tensor_name=_name(op), process_set=process_set, **fields))


@tf.RegisterGradient("HorovodAllreduce")  # type: ignore[untyped-decorator]
def _of_allreduce(op: Any, *grads: Any) -> list[Any]:
    names = ("reduction", "prescale_factor", "postscale_factor")
    return _allreduced(op, grads, **{name: op.get_attr(name) for name in names})


@tf.RegisterGradient("HorovodBroadcast")  # type: ignore[untyped-decorator]
def _of_broadcast(op: Any, *grads: Any) -> list[Any]:
    averaged = _allreduced(op, grads, reduction=Average)
    is_root = tf.equal(_queries.rank_op(), op.get_attr("root_rank"))
    return [tf.where(is_root, grad, tf.zeros_like(grad)) for grad in averaged]


def _own_rows(grad: Any, rows: Any, name: str, process_set: int) -> Any:
    """Returns the average of the ranks' gradients of this rank's `rows` rows."""
    own = [tf.reshape(rows, [1])]
    counts = functions.horovod_allgather(own, tensor_name=name + ".rows", process_set=process_set)[0]
    received, _ = functions.horovod_alltoall(grad, counts, tensor_name=name, process_set=process_set)
    ranks = tf.shape(counts)[:1]
    return tf.reduce_mean(tf.reshape(received, tf.concat([ranks, [rows], tf.shape(grad)[1:]], 0)), 0)


@tf.RegisterGradient("HorovodAllgather")  # type: ignore[untyped-decorator]
def _of_allgather(op: Any, *grads: Any) -> list[Any]:
    process_set, name = op.get_attr("process_set"), _name(op)
    return [
        _own_rows(grad, tf.shape(value)[0], f"{name}.{i}", process_set)
        for i, (grad, value) in enumerate(zip(grads, op.inputs))
    ]


@tf.RegisterGradient("HorovodAlltoall")  # type: ignore[untyped-decorator]
def _of_alltoall(op: Any, grad: Any, _: Any) -> list[Any]:
    process_set = op.get_attr("process_set")
    back, _ = functions.horovod_alltoall(grad, op.outputs[1], tensor_name=_name(op), process_set=process_set)
    # Rows beyond the splits were not sent.
    left = tf.shape(op.inputs[0])[:1] - tf.shape(back)[:1]
    unsent = tf.zeros(tf.concat([left, tf.shape(back)[1:]], 0), back.dtype)
    return [tf.concat([back, unsent], 0), None]


@tf.RegisterGradient("HorovodReducescatter")  # type: ignore[untyped-decorator]
def _of_reducescatter(op: Any, *grads: Any) -> list[Any]:
    process_set = op.get_attr("process_set")
    gathered = functions.horovod_allgather(list(grads), tensor_name=_name(op), process_set=process_set)
    factor = op.get_attr("prescale_factor") * op.get_attr("postscale_factor")
    if op.get_attr("reduction") == Sum:
        size = _queries.size_op(process_set)
        return [grad * tf.cast(size, grad.dtype) * tf.cast(factor, grad.dtype) for grad in gathered]
    return [grad * tf.cast(factor, grad.dtype) for grad in gathered]
