"""The process group of torch.distributed over the runtime."""

import atexit
import contextlib
import datetime
import os
import weakref
from collections.abc import Sequence
from typing import Any, Callable, Optional, Union

import torch
import torch.distributed as dist
from torch.distributed import Work

from horovod.torch.distributed import _collectives, _devices, _messages, _profiled
from horovod.torch.distributed._address import own_address
from horovod.torch.distributed._arguments import Tensors, caller_waits, listed, nested, op_of, plain, root_of
from horovod.torch.distributed._members import Members
from horovod.torch.distributed._store import GroupStore
from horovod.torch.distributed._works import WorksTogether

_OneOrMore = Union[torch.Tensor, Tensors]
_Lists = Union[Tensors, Sequence[Tensors]]

_open: "weakref.WeakSet[HorovodGroup]" = weakref.WeakSet()


# Its methods have overloads that differ between versions of torch, so their types are not checked.
_ProcessGroup: Any = dist.ProcessGroup


class HorovodGroup(_ProcessGroup):  # type: ignore[misc]
    """A process group whose tensors in host memory go through Horovod's runtime: shared memory within a host, TCP across hosts.
    torch.distributed makes it for the backend ``hvd``; scripts call the functions of torch.distributed. Tensors on a CUDA device
    go to torch's NCCL.

    Operations and works raise HorovodInternalError, a RuntimeError: another rank has died or left, has not come within the
    timeout, or has started another operation, with other sizes or types; the message says which rank and what.

    Args:
      store: of torch.distributed, for this group alone.
      rank: of this process in the group.
      size: how many ranks the group has.
      timeout: of connecting, and how long an operation waits for ranks that do not start it.
      name: for messages; "": the group of all ranks.
    """

    # torch 2.14 asks for these; without an answer of ours it fails for want of a default backend.
    supports_reconfigure = False
    supports_window = False

    def __init__(self, store: Any, rank: int, size: int, timeout: datetime.timedelta, name: str = "") -> None:
        super().__init__(rank, size)
        self._store = store
        self._timeout = timeout
        self._pid = os.getpid()
        self._name = ""
        self._desc = ""
        self._together: Optional[list[Work]] = None
        self._other_devices: dict[str, torch.device] = {}
        self._splits: dict[tuple[int, ...], int] = {}
        keys = GroupStore(store)
        seconds = timeout.total_seconds()
        self._members: Optional[Members] = None
        keys.leave_earlier_starts(rank, size, seconds)
        try:
            self._members = Members(rank, size, own_address(store), name, seconds, keys.set, keys.get)
        except Exception as error:
            with contextlib.suppress(Exception):  # the store may be what has failed
                keys.fail(f"Rank {rank} can't connect with the group: {error}")
            raise
        _open.add(self)
        _leave_first_at_exit()

    # What the group is.

    def getBackendName(self) -> str:
        """The backend's name."""
        return "hvd"

    name = getBackendName
    _get_backend_name = getBackendName

    def getGroupName(self) -> str:
        """The name that torch.distributed has given the group."""
        return self._name

    def setGroupName(self, name: str) -> None:
        """Sets the name."""
        self._name = name

    def getGroupDesc(self) -> str:
        """What the group is for."""
        return self._desc

    def setGroupDesc(self, desc: str) -> None:
        """Sets what the group is for."""
        self._desc = desc

    _set_group_name = setGroupName
    _set_group_desc = setGroupDesc
    group_name = property(getGroupName)
    group_desc = property(getGroupDesc)

    def get_group_store(self) -> Any:
        """The group's store."""
        return self._store

    @property
    def supports_splitting(self) -> bool:
        """True."""
        return True

    @property
    def options(self) -> None:
        """None: the backend has none."""

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device("cpu"), *self._other_devices.values()]

    def _get_backend(self, device: torch.device) -> Any:
        if torch.device(device).type == "cpu":
            return self
        self._add_device(torch.device(device))
        return super()._get_backend(device)

    get_backend = _get_backend

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        """Raises NotImplementedError: a group keeps the timeout with which it was made."""
        raise NotImplementedError(
            "The backend hvd can't change a group's timeout: give it to init_process_group or new_group."
        )

    _add_ephemeral_timeout = set_timeout

    def _set_sequence_number_for_group(self) -> None:
        """The runtime counts by itself."""

    def _get_sequence_number_for_group(self) -> int:
        return self._connected().count

    # The collectives of torch.distributed, with the arguments of ProcessGroup.

    def allreduce(self, tensors: _OneOrMore, opts: Any = None, timeout: Any = None, *, op: Any = None) -> Work:
        """As dist.all_reduce."""
        of_op = listed(tensors)
        if self._are_elsewhere(of_op):
            return super().allreduce(tensors, *_given(opts))  # type: ignore[no-any-return]
        return self._run("all_reduce", _collectives.allreduce, of_op, op_of(opts, op), self._waits(opts))

    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> Work:
        """As dist.all_reduce_coalesced."""
        if self._are_elsewhere(tensors):
            return super().allreduce_coalesced(tensors, *_given(opts))  # type: ignore[no-any-return]
        return self.allreduce(tensors, opts)

    def broadcast(self, tensors: _OneOrMore, opts: Any = None, timeout: Any = None, *, root: Any = None) -> Work:
        """As dist.broadcast."""
        of_op = listed(tensors)
        if self._are_elsewhere(of_op):
            return super().broadcast(tensors, *_given(opts))  # type: ignore[no-any-return]
        return self._run("broadcast", _collectives.broadcast, of_op, root_of(opts, root), self._waits(opts))

    def reduce(
        self, tensors: _OneOrMore, opts: Any = None, op: Any = None, timeout: Any = None, *, root: Any = None
    ) -> Work:
        """As dist.reduce."""
        of_op = listed(tensors)
        if self._are_elsewhere(of_op):
            return super().reduce(tensors, *_given(opts))  # type: ignore[no-any-return]
        reduction = op_of(opts if hasattr(opts, "reduceOp") else None, op)
        return self._run("reduce", _collectives.reduce, of_op, reduction, root_of(opts, root), self._waits(opts))

    def barrier(self, opts: Any = None) -> Work:
        """As dist.barrier."""
        return self._run("barrier", _collectives.barrier, self._waits(opts))

    def allgather(self, outputs: _Lists, inputs: _OneOrMore, opts: Any = None) -> Work:
        """As dist.all_gather."""
        own = listed(inputs)
        if self._are_elsewhere(own):
            return super().allgather(outputs, inputs, *_given(opts))  # type: ignore[no-any-return]
        return self._run("all_gather", _collectives.allgather, nested(outputs), own, self._waits(opts))

    def allgather_coalesced(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> Work:
        """As dist.all_gather_coalesced: the outputs are ordered by rank first."""
        if self._are_elsewhere(inputs):
            return super().allgather_coalesced(outputs, inputs, *_given(opts))  # type: ignore[no-any-return]
        by_input = [[of_rank[i] for of_rank in outputs] for i in range(len(inputs))]
        return self.allgather(by_input, inputs, opts)

    def all_gather_single(self, output: torch.Tensor, own: torch.Tensor, opts: Any = None) -> Work:
        """As dist.all_gather_into_tensor."""
        if self._are_elsewhere([own]):
            return super().all_gather_single(output, own, *_given(opts))  # type: ignore[no-any-return]
        return self.all_gather_single_coalesced([output], [own], opts)

    def all_gather_single_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Work:
        """As dist.all_gather_into_tensor, of several tensors."""
        if self._are_elsewhere(inputs):
            return super().all_gather_single_coalesced(outputs, inputs, *_given(opts))  # type: ignore[no-any-return]
        outputs, inputs = listed(outputs), listed(inputs)
        return self._run("all_gather_into_tensor", _collectives.allgather_single, outputs, inputs, self._waits(opts))

    def reduce_scatter(
        self, outputs: _OneOrMore, inputs: _Lists, opts: Any = None, timeout: Any = None, *, op: Any = None
    ) -> Work:
        """As dist.reduce_scatter."""
        of_rank = listed(outputs)
        if self._are_elsewhere(of_rank):
            return super().reduce_scatter(outputs, inputs, *_given(opts))  # type: ignore[no-any-return]
        return self._run(
            "reduce_scatter", _collectives.reduce_scatter, of_rank, nested(inputs), op_of(opts, op), self._waits(opts)
        )

    def reduce_scatter_single(self, output: torch.Tensor, own: torch.Tensor, opts: Any = None) -> Work:
        """As dist.reduce_scatter_tensor."""
        if self._are_elsewhere([own]):
            return super().reduce_scatter_single(output, own, *_given(opts))  # type: ignore[no-any-return]
        return self.reduce_scatter_single_coalesced([output], [own], opts)

    def reduce_scatter_single_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Work:
        """As dist.reduce_scatter_tensor, of several tensors."""
        if self._are_elsewhere(inputs):
            return super().reduce_scatter_single_coalesced(outputs, inputs, *_given(opts))  # type: ignore[no-any-return]
        outputs, inputs = listed(outputs), listed(inputs)
        return self._run(
            "reduce_scatter_tensor", _collectives.reduce_scatter_single, outputs, inputs, op_of(opts), self._waits(opts)
        )

    def all_to_all_single(
        self,
        output: torch.Tensor,
        own: torch.Tensor,
        receives: Optional[Sequence[int]] = None,
        sends: Optional[Sequence[int]] = None,
        opts: Any = None,
    ) -> Work:
        """As dist.all_to_all_single."""
        if self._are_elsewhere([own]):
            return super().all_to_all_single(output, own, receives or [], sends or [], *_given(opts))  # type: ignore[no-any-return]
        return self._run(
            "all_to_all_single",
            _collectives.alltoall_single,
            plain(output),
            plain(own),
            receives or [],
            sends or [],
            self._waits(opts),
        )

    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Work:
        """As dist.all_to_all."""
        if self._are_elsewhere(inputs):
            return super().alltoall(outputs, inputs, *_given(opts))  # type: ignore[no-any-return]
        outputs, inputs = listed(outputs), listed(inputs)
        return self._run("all_to_all", _collectives.alltoall, outputs, inputs, self._waits(opts))

    def gather(
        self, outputs: _Lists, inputs: _OneOrMore, opts: Any = None, timeout: Any = None, *, root: Any = None
    ) -> Work:
        """As dist.gather."""
        own = listed(inputs)
        if self._are_elsewhere(own):
            return super().gather(outputs, inputs, *_given(opts))  # type: ignore[no-any-return]
        return self._run("gather", _collectives.gather, nested(outputs), own, root_of(opts, root), self._waits(opts))

    def gather_single(self, output: torch.Tensor, own: torch.Tensor, opts: Any = None) -> Work:
        """As dist.gather_single of torch 2.14: the root gathers the inputs of all ranks into one output."""
        if self._are_elsewhere([own]):
            return super().gather_single(output, own, *_given(opts))  # type: ignore[no-any-return]
        output, own = plain(output), plain(own)
        if self.rank() != root_of(opts):
            return self.gather([], [own], opts)
        if output.numel() != own.numel() * self.size() or not output.is_contiguous():
            raise RuntimeError(
                f"The output needs {own.numel() * self.size()} elements in one piece for the {own.numel()} of each rank, and has "
                f"{output.numel()}."
            )
        return self.gather([list(output.view(self.size(), -1))], [own], opts)

    def scatter(
        self, outputs: _OneOrMore, inputs: _Lists, opts: Any = None, timeout: Any = None, *, root: Any = None
    ) -> Work:
        """As dist.scatter."""
        of_rank = listed(outputs)
        if self._are_elsewhere(of_rank):
            return super().scatter(outputs, inputs, *_given(opts))  # type: ignore[no-any-return]
        return self._run(
            "scatter", _collectives.scatter, of_rank, nested(inputs), root_of(opts, root), self._waits(opts)
        )

    # The names of these methods in older versions of torch.
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single

    # Messages between two ranks.

    def send(self, tensors: _OneOrMore, dstRank: int, tag: int = 0) -> Work:
        """As dist.isend."""
        own = listed(tensors)
        if self._are_elsewhere(own):
            return super().send(own, dstRank, tag)  # type: ignore[no-any-return]
        return self._run("send", _messages.send, own, dstRank, tag)

    def recv(self, tensors: _OneOrMore, srcRank: int, tag: int = 0) -> Work:
        """As dist.irecv."""
        own = listed(tensors)
        if self._are_elsewhere(own):
            return super().recv(own, srcRank, tag)  # type: ignore[no-any-return]
        return self._run("recv", _messages.receive, own, srcRank, tag)

    def recv_anysource(self, tensors: _OneOrMore, tag: int = 0) -> Work:
        """As dist.irecv without a source."""
        own = listed(tensors)
        if self._are_elsewhere(own):
            return super().recv_anysource(own, tag)  # type: ignore[no-any-return]
        return self._run("recv", _messages.receive, own, _messages.ANY_SOURCE, tag)

    def monitored_barrier(self, timeout: Optional[datetime.timedelta] = None, wait_all_ranks: bool = False) -> None:
        """Waits for all ranks as dist.monitored_barrier does, which torch has for Gloo alone. Rank 0 says which ranks have not come
        in time: the first one, or all of them with `wait_all_ranks`.

        Raises RuntimeError: on rank 0, some rank has not come within `timeout`; on the others, rank 0 has not answered.
        """
        _messages.monitored_barrier(self._connected(), timeout or self._timeout, wait_all_ranks)

    # Several operations as one work.

    def _start_coalescing(self, device: Any = None) -> None:
        if device is not None and not isinstance(device, list) and torch.device(device).type != "cpu":
            self._add_device(torch.device(device))
            return super()._start_coalescing(device)  # type: ignore[no-any-return]
        if self._together is not None:
            raise RuntimeError("The group is in a coalescing manager already.")
        self._together = []
        return None

    def _end_coalescing(self, device: Any = None) -> Work:
        if isinstance(device, list):  # torch 1.13 has the works itself
            self._together = None
            return WorksTogether(device)
        if device is not None and torch.device(device).type != "cpu":
            return super()._end_coalescing(device)  # type: ignore[no-any-return]
        works, self._together = self._together or [], None
        return WorksTogether(works)

    def _waits(self, opts: Any) -> bool:
        return self._together is None and caller_waits(opts)

    def _run(self, name: str, start: Callable[..., Work], *arguments: Any) -> Work:
        """Starts the operation of this name by start(members, *arguments)."""
        members = self._connected()
        if _profiled.is_on():
            work = _profiled.recorded(name, lambda: start(members, *arguments))
        else:
            work = start(members, *arguments)
        if self._together is not None:
            self._together.append(work)
        return work

    # Tensors that are not in host memory.

    def _are_elsewhere(self, tensors: Tensors) -> bool:
        """Whether torch's own backend for their device must take the tensors; makes that backend."""
        for tensor in tensors:
            if not tensor.is_cpu:
                self._add_device(tensor.device)
                return True
        return False

    def _add_device(self, device: torch.device) -> None:
        if device.type in self._other_devices:
            return
        config = dist.distributed_c10d._world.pg_backend_config.get(self, "")
        _devices.register(self, config, device, self._store, self._timeout)
        self._other_devices[device.type] = torch.device(device.type)

    # Other groups, and the end.

    def split_group(
        self,
        ranks: Sequence[int],
        timeout: Optional[datetime.timedelta] = None,
        opts: Any = None,
        group_name: Optional[str] = None,
        group_desc: Optional[str] = None,
        device_types: Any = None,
    ) -> Optional["HorovodGroup"]:
        """Returns a group of some ranks of this one, which only they need to call; None: this rank is not among them."""
        self._connected()
        if self.rank() not in ranks:
            return None
        chosen = tuple(ranks)
        self._splits[chosen] = (
            self._splits.get(chosen, 0) + 1
        )  # the same on the ranks of the split, which alone call it
        name = group_name or f"{self._name}:split:{self._splits[chosen]}"
        store = dist.distributed_c10d.PrefixStore(f"split/{name}/{'_'.join(map(str, ranks))}/", self._store)
        split = HorovodGroup(store, list(ranks).index(self.rank()), len(ranks), timeout or self._timeout, name)
        split.setGroupName(name)
        split.setGroupDesc(group_desc or f"{self._desc}:split")
        return split

    def _connected(self) -> Members:
        if self._members is None:
            raise RuntimeError("This process group was destroyed.")
        if self._pid != os.getpid():
            raise RuntimeError("A forked child can't use the process group of its parent.")
        return self._members

    def abort(self) -> None:
        """Breaks the group: operations in flight fail on all ranks."""
        if self._members is not None and self._pid == os.getpid():
            self._members.abort(f"rank {self.rank()} has aborted the process group")

    def shutdown(self) -> None:
        """Leaves the group. Works in flight fail."""
        members, self._members = self._members, None
        if members is not None and self._pid == os.getpid():
            members.close()

    def __del__(self) -> None:
        if getattr(self, "_members", None) is not None:
            self.shutdown()


def _given(opts: Any) -> tuple[Any, ...]:
    return () if opts is None else (opts,)


def _leave_all() -> None:
    """At the end of the process: leaves the groups that the script has not destroyed, so that other ranks don't take the end for
    a failure.
    """
    for group in list(_open):
        with contextlib.suppress(Exception):  # the others are left all the same
            group.shutdown()


def _leave_first_at_exit() -> None:
    """Makes _leave_all the first of the functions that run at the exit so far: one that was registered before, such as the end of
    an adopted worker, may wait for the other ranks.
    """
    atexit.unregister(_leave_all)
    atexit.register(_leave_all)


def create(store: Any, rank: int, size: int, timeout: datetime.timedelta) -> HorovodGroup:
    """Makes a group; torch.distributed calls it."""
    return HorovodGroup(store, rank, size, timeout)
