"""Broadcasting of variables, and of Python objects."""

from collections.abc import Iterable
from typing import Any, Callable, Optional

from horovod.common import objects
from horovod.common.process_sets import ProcessSet, global_process_set
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

_CARRIED_AS = {"uint32": tf.int32, "uint64": tf.int64, "complex64": tf.int64}


@not_converted
def broadcast_variables(
    variables: Iterable[Any], root_rank: int, process_set: ProcessSet = global_process_set, inplace: bool = False
) -> Any:
    """Overwrites `variables` with those of rank `root_rank`, all of them by one operation.

    Args:
      variables: tf.Variables or Keras's, the same number of the same shapes and types on all ranks.
      root_rank: the rank (of all ranks) whose values all get.
      process_set: the ranks that take part.
      inplace: not used; values are received and assigned.

    Returns the operation that does so, in a graph; None if it is done. Raises TypeError for what is no
    variable, or no list.
    """
    checked = checked_variables(variables, "hvd.broadcast_variables")
    targets = [_Carried(variable_of(variable)) for variable in checked]
    assigned = broadcast_(targets, root_rank, process_set=process_set) if targets else []
    return None if tf.executing_eagerly() else tf.group(*assigned)


class _Carried:
    """A variable as what operations can carry: another type of the same size, where they can't carry
    its own, as with the states of Keras's random generators."""

    def __init__(self, variable: Any) -> None:
        self._variable = variable
        self._dtype = variable.dtype.base_dtype
        self._carried = _CARRIED_AS.get(self._dtype.name)

    def read_value(self) -> Any:
        value = self._variable.read_value()
        return value if self._carried is None else tf.bitcast(value, self._carried)

    def assign(self, value: Any) -> Any:
        return self._variable.assign(value if self._carried is None else tf.bitcast(value, self._dtype))


def broadcast_global_variables(root_rank: int) -> Any:
    """Returns the operation that gives all ranks rank `root_rank`'s global variables of the default
    graph. Raises RuntimeError in eager execution, where there is no such collection."""
    if tf.executing_eagerly():
        raise RuntimeError(
            "hvd.broadcast_global_variables() does not support eager execution. Please use "
            "`hvd.broadcast_variables(<model/optimizer variables>)` instead."
        )
    return broadcast_variables(tf.compat.v1.global_variables(), root_rank)


def broadcast_object(
    obj: Any = None,
    root_rank: int = 0,
    session: Any = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Returns rank `root_rank`'s `obj` on all ranks of the process set, at once, also while a graph is
    made: it needs no `session`. Otherwise as :func:`horovod.common.objects.broadcast_object`."""
    return objects.broadcast_object(obj, root_rank, name, process_set)


def broadcast_object_fn(
    root_rank: int = 0,
    session: Any = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Callable[[Any], Any]:
    """Returns a function of an object: :func:`broadcast_object` with these arguments."""

    def broadcast(obj: Any = None) -> Any:
        return broadcast_object(obj, root_rank, session, name, process_set)

    return broadcast


def allgather_object(
    obj: Any, session: Any = None, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> list[Any]:
    """Returns the list of the `obj` of all ranks of the process set, in rank order. Otherwise as
    :func:`broadcast_object`."""
    return objects.allgather_object(obj, name, process_set)
