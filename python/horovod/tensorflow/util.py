"""Helper functions of the other modules."""

import contextlib
from typing import Any

from horovod.common import process_sets
from horovod.common.class_names import with_article
from horovod.common.process_sets import ProcessSet
from horovod.common.util import is_elastic
from horovod.tensorflow._library import tf
from horovod.tensorflow._queries import size_op


def _executing_eagerly() -> bool:
    """Returns whether operations run at once; False in a graph, or within a tf.function."""
    return bool(tf.executing_eagerly())


def gradient_name(name: str) -> str:
    """Returns the name of an operation that computes a gradient of the operation with that name. A graph may have several, which
    run in any order; they are distinguished by the order in which they are made.
    """
    return name + ".grad" if tf.executing_eagerly() else unique_name(name + ".grad")


def unique_name(name: str) -> str:
    """Returns `name`, with a number appended if the graph has it already; without name scopes, which may differ between ranks."""
    graph = tf.compat.v1.get_default_graph()
    with graph.name_scope(None):
        return str(graph.unique_name(name))


def on_device(device: str) -> Any:
    """Returns a context whose operations are placed on `device`; "" lets TensorFlow choose."""
    return tf.device(device) if device else contextlib.nullcontext()


def size_of(process_set: ProcessSet, dtype: Any) -> Any:
    """Returns the number of the set's ranks as a number of that dtype. In an elastic job it is read each time, because a traced
    function outlives changes of the size.
    """
    process_set_id = process_sets.check(process_set)
    return tf.cast(size_op(process_set_id) if is_elastic() else process_set.size(), dtype)


def tensor_of(value: Any) -> Any:
    """Returns `value` as a tensor. Raises TypeError for tensors that are not dense, and otherwise as tf.convert_to_tensor."""
    if isinstance(value, (tf.RaggedTensor, tf.SparseTensor)):
        parts = "flat_values" if isinstance(value, tf.RaggedTensor) else "values"
        raise TypeError(f"Horovod takes dense tensors, got {with_article(value)}: use its {parts}")
    return value if isinstance(value, tf.Tensor) else tf.convert_to_tensor(value)


def check_group(tensors: Any) -> None:
    """Raises TypeError if the tensors of a grouped operation are a single tensor or not a sequence."""
    if isinstance(tensors, (list, tuple)):
        return
    if hasattr(tensors, "dtype") or not hasattr(tensors, "__iter__"):
        raise TypeError(f"A grouped operation needs a list of tensors, got {type(tensors).__name__}")


def checked_variables(variables: Any, taker: str) -> list[Any]:
    """Returns `variables`, which are tf.Variables or Keras variables, as a list. Raises TypeError, which names `taker`, for a value
    that is not a variable.
    """
    needs = f"{taker} needs a list of tf.Variables, got"
    if hasattr(variables, "dtype") or not hasattr(variables, "__iter__"):
        advice = ": give its variables" if hasattr(type(variables), "variables") else ""
        raise TypeError(f"{needs} {type(variables).__name__}{advice}")
    found = list(variables)
    for variable in map(variable_of, found):
        if not (hasattr(variable, "assign") and hasattr(variable, "read_value")):
            raise TypeError(f"{needs} one of {type(variable).__name__}")
    return found


def variable_of(variable: Any) -> Any:
    """Returns the tf.Variable of a Keras 3 variable; any other value unchanged."""
    value = getattr(variable, "value", None)
    return value if isinstance(value, tf.Variable) else variable
