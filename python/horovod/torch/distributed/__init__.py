"""The backend ``hvd`` of torch.distributed: ``torch.distributed.init_process_group("hvd")``.

Scripts keep their calls of torch.distributed, and everything that is built on it: DistributedDataParallel, FSDP, DTensor,
pipelines, distributed checkpoints. The import registers the backend, and sets torch's variables where srun or mpirun has started
the process.
"""

import datetime
import functools
from typing import Optional

import torch.distributed as dist

from horovod import _torch_backend
from horovod.torch.distributed import _launch, _works
from horovod.torch.distributed._compiled import keep_from_compiler
from horovod.torch.distributed._group import HorovodGroup, create

__all__ = ["HorovodGroup", "create"]


def _take_monitored_barriers() -> None:
    """Makes dist.monitored_barrier work on our groups: torch refuses all backends but Gloo by name."""
    of_torch = dist.monitored_barrier

    @functools.wraps(of_torch)
    def monitored_barrier(
        group: Optional[dist.ProcessGroup] = None,
        timeout: Optional[datetime.timedelta] = None,
        wait_all_ranks: bool = False,
    ) -> None:
        chosen = group or dist.group.WORLD
        if isinstance(chosen, HorovodGroup):
            chosen.monitored_barrier(timeout, wait_all_ranks)
        else:
            of_torch(group, timeout, wait_all_ranks)

    dist.monitored_barrier = dist.distributed_c10d.monitored_barrier = monitored_barrier


_torch_backend.register(create)
keep_from_compiler(HorovodGroup, _works.StartedWork, _works.TransferWork, _works.EndedWork, _works.WorksTogether)
_take_monitored_barriers()
_launch.show_ranks()
_launch.join_for_addresses()
