"""Collectives on values outside of any model: arrays, numbers, and tensors of Keras's backend."""

from typing import Any, Optional

import horovod.numpy as hvd
from horovod._keras.tensors import array_of, tensor_of
from horovod.common.util import get_average_backwards_compatibility_fun

_reduction = get_average_backwards_compatibility_fun()


def allreduce(
    backend: str,
    value: Any,
    name: Optional[str],
    average: Optional[bool],
    prescale_factor: float,
    postscale_factor: float,
    op: Optional[int],
    compression: Any,
) -> Any:
    op = _reduction(op, average)
    tensor = tensor_of(array_of(value, backend), backend)
    compressed, context = compression.compress(tensor)
    reduced = hvd.allreduce(array_of(compressed, backend), name, op, prescale_factor, postscale_factor)
    return compression.decompress(tensor_of(reduced, backend), context)


def allgather(backend: str, value: Any, name: Optional[str]) -> Any:
    return tensor_of(hvd.allgather(array_of(value, backend), name), backend)


def broadcast(backend: str, value: Any, root_rank: int, name: Optional[str]) -> Any:
    return tensor_of(hvd.broadcast(array_of(value, backend), root_rank, name), backend)


def reducescatter(backend: str, value: Any, name: Optional[str], op: int) -> Any:
    return tensor_of(hvd.reducescatter(array_of(value, backend), name, op), backend)


def broadcast_global_variables(backend: str, root_rank: int) -> Any:
    instead = f": pass hvd.callbacks.BroadcastGlobalVariablesCallback({root_rank}) to fit()"
    if backend != "tensorflow":
        raise RuntimeError("broadcast_global_variables is for graphs of TensorFlow" + instead)
    import tensorflow as tf

    from horovod.tensorflow import functions

    if tf.executing_eagerly():
        raise RuntimeError("broadcast_global_variables is for graphs, and this is eager execution" + instead)
    operation = functions.broadcast_global_variables(root_rank)
    # Keras 3 has no session: None stands for the default one.
    get_session = getattr(tf.compat.v1.keras.backend, "get_session", lambda: None)
    return operation.run(session=get_session())
