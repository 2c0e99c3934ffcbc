"""A warning for scripts of which a commit falls within a group of backward passes whose gradients are accumulated."""

from collections.abc import Iterable

from horovod.common import _warnings
from horovod.common.basics import rank
from horovod.elastic.handlers import StateHandler

_OPEN = (
    "a commit came within an accumulation group of backward passes ({group}): if the world changes there, what the group has "
    "accumulated before the commit is lost, or counts on some ranks only. Commit when a group is complete, such as after "
    "every multiple of backward_passes_per_step batches"
)
_has_warned = False


def warn(handlers: Iterable[StateHandler]) -> None:
    """Warns, once in the process, if an optimizer of a state that has just been committed is within such a group. Of all ranks
    rank 0 does so.

    Args:
      handlers: those of the state's values.
    """
    global _has_warned
    if _has_warned or rank() != 0:
        return
    # The handlers that scripts define need not derive from StateHandler.
    groups = (handler.open_group() for handler in handlers if isinstance(handler, StateHandler))
    group = next(filter(None, groups), "")
    if group:
        _has_warned = True
        _warnings.warn(_OPEN.format(group=group))
