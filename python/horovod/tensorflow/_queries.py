"""Operations that read ranks and sizes each time they run, because a graph may outlive a world."""

from typing import Any, Callable, Optional

from horovod.common import _process, process_sets
from horovod.tensorflow import _xla
from horovod.tensorflow._library import not_converted, tf

__all__ = ["local_rank_op", "local_size_op", "process_set_included_op", "rank_op", "size_op"]


def _asked(function: Callable[[], int], name: Optional[str]) -> Any:
    _xla.refuse("an operation that asks for ranks or sizes")
    value = tf.numpy_function(lambda: tf.int32.as_numpy_dtype(function()), [], tf.int32, stateful=True, name=name)
    value.set_shape(())
    return value


def _set_of(process_set_id: int) -> process_sets.ProcessSet:
    if process_set_id == 0:
        return process_sets.global_process_set
    entries = process_sets.registry.of_id(process_set_id)
    if not entries:
        raise ValueError(f"There is no process set {process_set_id}.")
    return entries[0].process_set


@not_converted
def size_op(process_set_id: int = 0, name: Optional[str] = None) -> Any:
    """Returns an operation that gives the number of ranks of a process set, as an int32 scalar.

    Args:
      process_set_id: the id of the set; 0: all ranks.
      name: the operation's name in the graph.

    Example:
      >>> int(hvd.size_op())
      1
    """
    return _asked(lambda: _set_of(process_set_id).size() or 0, name)


@not_converted
def process_set_included_op(process_set_id: int = 0, name: Optional[str] = None) -> Any:
    """Returns an operation that gives 1 if this rank is in a process set, else 0, as an int32 scalar.

    Args:
      process_set_id: the id of the set; 0: all ranks.
      name: the operation's name in the graph.
    """
    return _asked(lambda: int(bool(_set_of(process_set_id).included())), name)


@not_converted
def local_size_op(name: Optional[str] = None) -> Any:
    """Returns an operation that gives the number of ranks on this machine, as an int32 scalar.

    Args:
      name: the operation's name in the graph.
    """
    return _asked(_process.local_size, name)


@not_converted
def rank_op(name: Optional[str] = None) -> Any:
    """Returns an operation that gives this process's rank, as an int32 scalar.

    Args:
      name: the operation's name in the graph.
    """
    return _asked(_process.rank, name)


@not_converted
def local_rank_op(name: Optional[str] = None) -> Any:
    """Returns an operation that gives this process's rank on its machine, as an int32 scalar.

    Args:
      name: the operation's name in the graph.
    """
    return _asked(_process.local_rank, name)
