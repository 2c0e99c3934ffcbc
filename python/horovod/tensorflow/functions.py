"""Broadcasts of variables and Python objects."""

from collections.abc import Iterable
from typing import Any, Callable, Optional

from horovod.common import objects
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.common.tensors import DTYPES, PARTS
from horovod.tensorflow._library import not_converted, tf
from horovod.tensorflow.mpi_ops import broadcast_
from horovod.tensorflow.util import checked_variables, variable_of

__all__ = [
    "allgather_object",
    "broadcast_global_variables",
    "broadcast_object",
    "broadcast_object_fn",
    "broadcast_variables",
]

_CARRIED_AS = {"uint32": tf.int32, "uint64": tf.int64}
_SENT = (*DTYPES, *PARTS, "uint16", *_CARRIED_AS)


@not_converted
def broadcast_variables(
    variables: Iterable[Any], root_rank: int, process_set: ProcessSet = global_process_set, inplace: bool = False
) -> Any:
    """Overwrites variables with those of rank `root_rank`, all of them as one operation.

    Args:
      variables: variables of TensorFlow or Keras. Their number, shapes and dtypes are the same on all ranks.
      root_rank: the rank in the world whose values all ranks get.
      process_set: the ranks that take part.
      inplace: not used; values are received and then assigned.

    Returns:
      In a graph, the operation that does it; None in eager execution.

    Raises:
      TypeError: `variables` is not an iterable of variables, or one has a type that can't be sent, as tf.string.

    Example:
      >>> import tensorflow as tf
      >>> weights = tf.Variable([1.0, 2.0])
      >>> hvd.broadcast_variables([weights], root_rank=0)
    """
    checked = checked_variables(variables, "hvd.broadcast_variables")
    targets = [_Carried(variable_of(variable)) for variable in checked]
    assigned = broadcast_(targets, root_rank, process_set=process_set) if targets else []
    return None if tf.executing_eagerly() else tf.group(*assigned)


class _Carried:
    """A variable in a dtype that operations support: another one of the same size if they do not support its own, as for the
    states of Keras's random generators.
    """

    def __init__(self, variable: Any) -> None:
        self._variable = variable
        self._dtype = variable.dtype.base_dtype
        if self._dtype.name not in _SENT:
            raise TypeError(
                f"hvd.broadcast_variables can't send the variable {variable.name}, whose type is {self._dtype.name}: "
                f"leave it out. It takes {', '.join(_SENT)}."
            )
        self._carried = _CARRIED_AS.get(self._dtype.name)

    def read_value(self) -> Any:
        value = self._variable.read_value()
        return value if self._carried is None else tf.bitcast(value, self._carried)

    def assign(self, value: Any) -> Any:
        return self._variable.assign(value if self._carried is None else tf.bitcast(value, self._dtype))


def broadcast_global_variables(root_rank: int) -> Any:
    """Returns the operation that gives all ranks rank `root_rank`'s global variables of the default graph.

    Args:
      root_rank: the rank in the world whose values all ranks get.

    Raises:
      RuntimeError: execution is eager, where there is no such collection.
    """
    if tf.executing_eagerly():
        raise RuntimeError(
            "broadcast_global_variables is for graphs, and this is eager execution: "
            "name the variables, as in hvd.broadcast_variables(model.variables, root_rank=0)"
        )
    return broadcast_variables(tf.compat.v1.global_variables(), root_rank)


def broadcast_object(
    obj: Any = None,
    root_rank: int = 0,
    session: Any = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Returns rank `root_rank`'s object on all ranks of the process set. It is broadcast at once, also while a graph is built.

    Args:
      obj: any object that cloudpickle can pickle. Only the root's is used.
      root_rank: the root's rank in the world, also with a process set.
      session: not used.
      name: the operation's name, the same on all ranks.
      process_set: the ranks that take part.

    Returns:
      The root's object.

    Raises:
      ValueError: `root_rank` is not in the process set.
      HorovodInternalError: the world is broken.

    Example:
      >>> hvd.broadcast_object({"lr": 0.1}, root_rank=0)
      {'lr': 0.1}
    """
    return objects.broadcast_object(obj, root_rank, name, process_set)


def broadcast_object_fn(
    root_rank: int = 0,
    session: Any = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Callable[[Any], Any]:
    """Returns a function that broadcasts its argument as :func:`broadcast_object` does.

    Args:
      root_rank, session, name, process_set: as for :func:`broadcast_object`.

    Example:
      >>> hvd.broadcast_object_fn(root_rank=0)("a")
      'a'
    """

    def broadcast(obj: Any = None) -> Any:
        return broadcast_object(obj, root_rank, session, name, process_set)

    return broadcast


def allgather_object(
    obj: Any, session: Any = None, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> list[Any]:
    """Returns the objects of all ranks of the process set, in rank order, on each of these ranks.

    Args:
      obj: any object that cloudpickle can pickle.
      session: not used.
      name: the operation's name, the same on all ranks.
      process_set: the ranks that take part.

    Example:
      >>> hvd.allgather_object("a")
      ['a']
    """
    return objects.allgather_object(obj, name, process_set)
