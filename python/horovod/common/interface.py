"""The names that every framework's package exports in addition to its own functions."""

from horovod.common import _essentials
from horovod.common._essentials import *
from horovod.common.basics import is_homogeneous
from horovod.common.exceptions import HorovodRequestError
from horovod.common.objects import allgather_object, broadcast_object
from horovod.common.ops import join, poll, synchronize
from horovod.common.process_sets import (
    ProcessSet,
    add_process_set,
    barrier,
    global_process_set,
    remove_process_set,
)

__all__ = [
    *_essentials.__all__,
    "HorovodRequestError",
    "ProcessSet",
    "add_process_set",
    "allgather_object",
    "barrier",
    "broadcast_object",
    "global_process_set",
    "is_homogeneous",
    "join",
    "poll",
    "remove_process_set",
    "synchronize",
]
