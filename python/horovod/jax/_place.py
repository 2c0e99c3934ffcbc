"""The ranks and sizes that a traced function may contain, which another world changes."""

from horovod.common import _process, ops, process_sets
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.jax._library import jax

_is_used = False


def traced(process_set: ProcessSet) -> tuple[int, int]:
    """Returns this process's number in the set and the set's size, for a function that is being traced. The function is traced again
    in another world. Raises as process_sets.check, and ValueError if this process is not in the set.
    """
    global _is_used
    _is_used = True
    ops.check_ready()
    process_sets.check(process_set)
    return process_set.rank(), process_set.size()  # type: ignore[return-value]  # known: it was checked


def world_rank() -> int:
    """Returns this process's rank, as :func:`traced` does."""
    return traced(global_process_set)[0]


def process_set_id(process_set: ProcessSet) -> int:
    """Returns the id of a set, for a function that is being traced; see :func:`traced`."""
    global _is_used
    ops.check_ready()
    if process_set is not global_process_set:
        _is_used = True
    return process_sets.check(process_set)


def _trace_again() -> None:
    global _is_used
    if _is_used:
        _is_used = False
        jax.clear_caches()


_process.on_init(_trace_again)
