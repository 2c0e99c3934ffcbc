"""A warning for scripts of elastic jobs that commit without a function under hvd.elastic.run."""

from horovod.common import _warnings
from horovod.common._process import process
from horovod.common.basics import is_initialized, rank
from horovod.common.util import is_elastic
from horovod.elastic.runs import runs

_OUTSIDE = (
    "{call} outside of hvd.elastic.run: nothing is synchronized or restored when the world changes, so training would begin anew. "
    "Decorate the function that trains with @hvd.elastic.run and call it with the state"
)
_has_warned = False


def warn(call: str) -> None:
    """Warns, once in the process, if the script has not called a function under hvd.elastic.run yet. Of all ranks rank 0 does so.

    Args:
      call: what the script has called.
    """
    global _has_warned
    if runs.inside or process.uses_run or _has_warned or not is_elastic():
        return
    _has_warned = True
    if not is_initialized() or rank() == 0:
        _warnings.warn(_OUTSIDE.format(call=call))
