"""Broadcast and allgather of Python objects, which are pickled."""

import array
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional

from horovod import _ffi
from horovod.common import ops, process_sets
from horovod.common.basics import rank
from horovod.common.collective_kinds import check_root
from horovod.common.process_sets import ProcessSet, global_process_set

if TYPE_CHECKING:
    from horovod._ffi._memory import SizedBuffer


class _Sealing:
    """The seals of one operation on objects. Received bytes are unpickled only if another rank of the job has sealed them,
    because a pickle from a stranger can run any code.
    """

    def __init__(self, kind: str, name: str, process_set: ProcessSet) -> None:
        self._name = f"{kind} {name}"
        self._process_set = process_set

    def seal(self, data: memoryview) -> None:
        """Writes the seal into `data`, which :func:`_to_bytes` has made. No other operation of this name may come between the seal
        and the operation that sends `data`.
        """
        size = len(data) - _ffi.SEAL_BYTES
        process_set = self._process_set.process_set_id or 0
        _ffi.seal(self._name, process_set, _ffi.address_of_buffer(data), size)

    def check(self, senders: Sequence[int], received: memoryview, sizes: Sequence[int]) -> None:
        """Verifies the seal of each part of `received`. All ranks must call it.

        Raises HorovodInternalError if a part is not what its sender has sealed; the world is broken then. `senders` are ranks in
        the world, `sizes` the parts' sizes in bytes.
        """
        address = _ffi.address_of_buffer(received)
        addresses = []
        for size in sizes:
            addresses.append(address)
            address += size
        process_set = self._process_set.process_set_id or 0
        _ffi.open_sealed(self._name, process_set, senders, addresses, sizes)


def _to_bytes(obj: object) -> memoryview:
    """Returns the pickle of `obj`, followed by room for its seal."""
    import cloudpickle  # not before it is needed: it costs imports

    stream = io.BytesIO()
    cloudpickle.dump(obj, stream)
    stream.write(bytes(_ffi.SEAL_BYTES))
    return stream.getbuffer()


def _from_bytes(checked: memoryview) -> object:
    import cloudpickle

    return cloudpickle.loads(checked[: -_ffi.SEAL_BYTES])


def _broadcast(memory: "SizedBuffer", dtype: int, root_rank: int, name: str, process_set: int) -> None:
    """Overwrites a buffer with the root's buffer."""
    address = _ffi.address_of_buffer(memory)
    with ops.naming("broadcast", name, process_set) as name:
        request = _ffi.request(name, _ffi.BROADCAST, dtype, (len(memory),), address, address, root_rank=root_rank)
        handle = ops.submit([request], _ffi.release, memory, process_set, waits=True)
    ops.synchronize(handle)


def _allgather(memory: "SizedBuffer", dtype: int, name: str, process_set: int) -> memoryview:
    """Returns the concatenated bytes of the ranks' buffers."""
    itemsize = memoryview(memory).itemsize

    def finish(handle: int) -> memoryview:
        owner = _ffi.ResultOwner(handle)
        result = _ffi.result(handle, 0)
        size = result.shape[0] * itemsize
        gathered = _ffi.memory(result.address, size, owner) if size else bytearray()
        return memoryview(gathered).cast("B")

    address = _ffi.address_of_buffer(memory)
    with ops.naming("allgather", name, process_set) as name:
        request = _ffi.request(name, _ffi.ALLGATHER, dtype, (len(memory),), address)
        handle = ops.submit([request], finish, memory, process_set, waits=True)
    gathered: memoryview = ops.synchronize(handle)
    return gathered


def broadcast_object(
    obj: object = None,
    root_rank: int = 0,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Returns rank `root_rank`'s object on all ranks of the process set.

    Args:
      obj: any object that cloudpickle can pickle. Only the root's is used.
      root_rank: the root's rank in the world, also with a process set.
      name: the operation's name, the same on all ranks.
      process_set: the ranks that take part.

    Returns:
      The root's object: `obj` itself on the root, a copy on other ranks.

    Raises:
      ValueError: `root_rank` is not in the process set.
      HorovodInternalError: the world is broken.
      Exception: whatever pickling raises, on the root.

    Example:
      >>> hvd.broadcast_object({"lr": 0.1}, root_rank=0)
      {'lr': 0.1}
    """
    name = name or "broadcast_object"
    process_set_id = process_sets.check(process_set)
    check_root(root_rank, process_set)
    is_root = rank() == root_rank
    sealing = _Sealing("broadcast", name, process_set)
    data = _to_bytes(obj) if is_root else memoryview(b"")
    length = array.array("q", [len(data)])
    _broadcast(length, _ffi.INT64, root_rank, name + ".size", process_set_id)
    if is_root:
        sealing.seal(data)
    else:
        data = memoryview(_ffi.zeros(max(length[0], 0)))
    _broadcast(data, _ffi.UINT8, root_rank, name + ".data", process_set_id)
    sealing.check([root_rank], data, [len(data)])
    return obj if is_root else _from_bytes(data)


def allgather_object(
    obj: object, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> list[Any]:
    """Returns the objects of all ranks of the process set, in rank order, on each of these ranks.

    Args:
      obj: any object that cloudpickle can pickle.
      name: the operation's name, the same on all ranks.
      process_set: the ranks that take part.

    Returns:
      The list of the objects.

    Raises:
      HorovodInternalError: the world is broken.
      Exception: whatever pickling raises.

    Example:
      >>> hvd.allgather_object("a")
      ['a']
    """
    name = name or "allgather_object"
    process_set_id = process_sets.check(process_set)
    sealing = _Sealing("allgather", name, process_set)
    data = _to_bytes(obj)
    length = array.array("q", [len(data)])
    sizes = _allgather(length, _ffi.INT64, name + ".sizes", process_set_id)
    lengths = list(sizes.cast("q"))
    sealing.seal(data)
    gathered = _allgather(data, _ffi.UINT8, name + ".data", process_set_id)
    if min(lengths) < 0 or sum(lengths) != len(gathered):
        lengths = [len(gathered)] + [0] * (len(lengths) - 1)  # which fits no seal
    # A set that can be used has ranks.
    sealing.check(process_set.ranks, gathered, lengths)  # type: ignore[arg-type]
    objects = []
    for size in lengths:
        objects.append(_from_bytes(gathered[:size]))
        gathered = gathered[size:]
    return objects
