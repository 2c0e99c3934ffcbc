"""Operations that ask for ranks and sizes whenever they are run: a graph may outlive a world."""

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
    """The number of ranks of the process set with that id, an int32 scalar."""
    return _asked(lambda: _set_of(process_set_id).size() or 0, name)


@not_converted
def process_set_included_op(process_set_id: int = 0, name: Optional[str] = None) -> Any:
    """1 if this rank is in the process set with that id, else 0: an int32 scalar."""
    return _asked(lambda: int(bool(_set_of(process_set_id).included())), name)


@not_converted
def local_size_op(name: Optional[str] = None) -> Any:
    """The number of ranks on this host, an int32 scalar."""
    return _asked(_process.local_size, name)


@not_converted
def rank_op(name: Optional[str] = None) -> Any:
    """This process's rank, an int32 scalar."""
    return _asked(_process.rank, name)


@not_converted
def local_rank_op(name: Optional[str] = None) -> Any:
    """This process's rank on its host, an int32 scalar."""
    return _asked(_process.local_rank, name)
