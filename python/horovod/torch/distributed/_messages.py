"""Messages between two ranks, and the barrier that is made of them."""

import datetime
import time
from collections.abc import Sequence

import torch
from torch.distributed import Work

from horovod import _ffi
from horovod.torch.distributed._members import Members
from horovod.torch.distributed._tensors import check_dense, contiguous
from horovod.torch.distributed._works import TransferWork, WorkTimeout

ANY_SOURCE = _ffi.ANY_SOURCE
_FIRST_BARRIER = 1 << 40  # tags of scripts are smaller


def send(members: Members, tensors: Sequence[torch.Tensor], peer: int, tag: int) -> TransferWork:
    """Starts to send a tensor to a rank of the group."""
    tensor = _only(tensors, tag)
    return members.send(peer, tag, contiguous(tensor), tensor)


def receive(members: Members, tensors: Sequence[torch.Tensor], source: int, tag: int) -> Work:
    """Starts to receive a tensor from a rank of the group, or from any."""
    tensor = _only(tensors, tag)
    if contiguous(tensor) is tensor:
        return members.receive(source, tag, tensor, tensor, None)
    room = torch.empty(tensor.shape, dtype=tensor.dtype)
    return members.receive(source, tag, room, tensor, lambda _: tensor.copy_(room))


def _only(tensors: Sequence[torch.Tensor], tag: int) -> torch.Tensor:
    check_dense(tensors)
    if tag < 0:
        raise RuntimeError(f"The tag of a message is 0 or more, not {tag}.")
    if len(tensors) != 1:
        raise RuntimeError(f"A message is one tensor, got {len(tensors)}.")
    return tensors[0]


def monitored_barrier(members: Members, timeout: datetime.timedelta, wait_all_ranks: bool) -> None:
    """See :meth:`HorovodGroup.monitored_barrier`."""
    token = torch.zeros(1, dtype=torch.uint8)
    tag = _FIRST_BARRIER + members.next_barrier()
    if members.rank != 0:
        send(members, [token], 0, tag).wait()
        answer = receive(members, [token], 0, tag)
        if not _came(answer, time.monotonic() + timeout.total_seconds()):
            members.abort("rank 0 has not passed monitored_barrier in time")
            raise RuntimeError(
                f"Rank {members.rank} has waited for rank 0 in monitored_barrier for {timeout.total_seconds():g} s."
            )
        return
    deadline = time.monotonic() + timeout.total_seconds()
    missing = []
    for rank in range(1, members.size):
        if not _came(receive(members, [token.clone()], rank, tag), deadline):
            missing.append(rank)
            if not wait_all_ranks:
                break
    if missing:
        who = ", ".join(map(str, missing))
        text = f"Rank{'s' * (len(missing) > 1)} {who} failed to pass monitoredBarrier in {timeout / _MILLISECOND:g} ms"
        members.abort(text)
        raise RuntimeError(text)
    for rank in range(1, members.size):
        send(members, [token], rank, tag).wait()


_MILLISECOND = datetime.timedelta(milliseconds=1)


def _came(work: Work, deadline: float) -> bool:
    left = deadline - time.monotonic()
    try:
        work.wait(datetime.timedelta(seconds=max(left, 0.001)))
    except WorkTimeout:
        return False
    return True
