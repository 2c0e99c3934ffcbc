"""What every framework's package exports beside its own functions."""

from horovod.common.basics import (
    cross_rank,
    cross_size,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    rank,
    shutdown,
    size,
    start_timeline,
    stop_timeline,
)
from horovod.common.exceptions import HorovodInternalError, HorovodRequestError
from horovod.common.objects import allgather_object, broadcast_object
from horovod.common.ops import (
    Adasum,
    Average,
    Max,
    Min,
    Product,
    Sum,
    join,
    poll,
    synchronize,
)
from horovod.common.process_sets import (
    ProcessSet,
    add_process_set,
    barrier,
    global_process_set,
    remove_process_set,
)

__all__ = [
    "Adasum",
    "Average",
    "HorovodInternalError",
    "HorovodRequestError",
    "Max",
    "Min",
    "ProcessSet",
    "Product",
    "Sum",
    "add_process_set",
    "allgather_object",
    "barrier",
    "broadcast_object",
    "cross_rank",
    "cross_size",
    "global_process_set",
    "init",
    "is_homogeneous",
    "is_initialized",
    "join",
    "local_rank",
    "local_size",
    "poll",
    "rank",
    "remove_process_set",
    "shutdown",
    "size",
    "start_timeline",
    "stop_timeline",
    "synchronize",
]
