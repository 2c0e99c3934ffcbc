"""Operations as events of torch's profiler: "hvd:all_reduce", as Gloo's are "gloo:all_reduce"."""

import threading
from typing import Callable

import torch
from torch.autograd import _profiler_enabled  # type: ignore[attr-defined, unused-ignore]
from torch.distributed import Work

from horovod.torch.distributed._works import StartedWork, TransferWork

is_on: Callable[[], bool] = _profiler_enabled  # whether a profiler records this thread


def recorded(name: str, start: Callable[[], Work]) -> Work:
    """Calls start(), which starts the operation of this name, and returns its work. The event lasts from the call to the end of the
    operation, however late the script waits. That of a message lasts until the script has waited.
    """
    event = torch.profiler.record_function("hvd:" + name)
    event.__enter__()
    work = None
    try:
        work = start()
    finally:
        if not isinstance(work, StartedWork):
            event.__exit__(None, None, None)
    if isinstance(work, TransferWork):  # whose future would have a thread for each message
        work.after_wait(lambda: event.__exit__(None, None, None))
    elif isinstance(work, StartedWork):
        # By the thread of the future, which torch then takes for one that is profiled: it ignores an end on any other.
        future, noted = work.get_future(), threading.Event()
        event._call_end_callbacks_on_future(future)
        future.add_done_callback(lambda _: noted.set())
        work.after_wait(noted.wait)  # the script may stop the profiler then
    return work
