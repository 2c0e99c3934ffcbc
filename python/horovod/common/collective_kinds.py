"""The kinds of collectives, and their collection for one framework."""

import array
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Optional

from horovod import _ffi
from horovod.common import _process, ops
from horovod.common.collective import Call, Collective, Fields, Recording, Requests
from horovod.common.exceptions import HorovodRequestError
from horovod.common.prepared_collective import Places, PreparedCollective
from horovod.common.process_sets import ProcessSet, global_process_set, rank_in, size_of
from horovod.common.tensors import PARTS, Kind, T, TensorAdapter, check_group, kind_of, new

_MOST_ROWS = 2**31 - 1  # to one rank: splits are sent as 32-bit integers

AVERAGE: Fields = dict(reduction=ops.Average, prescale=1.0, postscale=1.0)


def check_reduction(reduction: int) -> None:
    """Raises ValueError if `reduction` is not one of hvd's reductions."""
    if reduction not in ops.REDUCTIONS:
        raise ValueError(f"op={reduction!r} is not one of hvd.Average, Sum, Adasum, Min, Max, Product")


def reduces_on_devices(are_floats: bool, reduction: int, prescale: float, postscale: float) -> bool:
    """Returns whether the runtime supports this reduction in device memory: there it scales only floating-point numbers, and has
    no Adasum.
    """
    if reduction == ops.Adasum:
        return False
    is_scaled = reduction == ops.Average or prescale != 1.0 or postscale != 1.0
    return not is_scaled or (are_floats and reduction in (ops.Average, ops.Sum))


def is_of_parts(kinds: Sequence[Kind], fields: Mapping[str, Any]) -> bool:
    """Returns whether an operation on tensors of these kinds is the same one on the real and imaginary parts of the complex ones among
    them, in their memory: not for a scalar, whose two parts would be rows.
    """
    complex_shapes = [shape for shape, dtype in kinds if dtype in PARTS]
    return not complex_shapes or (fields.get("reduction", ops.Sum) in (ops.Sum, ops.Average) and all(complex_shapes))


class Allreduce(PreparedCollective[T]):
    """Reduces tensors over all ranks and gives the result to all ranks. Its fields are reduction, prescale and postscale."""

    name = "allreduce"
    op = _ffi.ALLREDUCE

    def check_fields(self, fields: Fields) -> None:
        check_reduction(fields["reduction"])

    def requests(self, tensors: list[T], call: Call) -> Requests[T]:
        self.check_fields(call.fields)
        outputs = tensors if call.in_place else [self.adapter.empty_like(t)[0] for t in tensors]
        return Requests(tensors, outputs, [call.fields] * len(tensors))

    def new_output(self, tensor: T, address: int, call: Call) -> Places[T]:
        output, target = self.adapter.empty_like(tensor)
        assert target is not None  # in host memory as well
        return address, output, target

    def backward(self, grads: list[T], saved: list[Any], process_set: ProcessSet, single: bool) -> list[T]:
        call = Call(None, process_set, False, saved[0])
        if single:
            return [self.recording.run(self, grads[0], call)]
        return list(self.recording.run_group(self, grads, call))


class _Rows(Collective[T, T]):
    """A collective whose values are the tensors in the runtime's memory."""

    def value(self, tensor: T, result: _ffi.Result, call: Call, index: int) -> T:
        return tensor


class Allgather(_Rows[T]):
    """Concatenates the ranks' tensors on all ranks."""

    name = "allgather"
    op = _ffi.ALLGATHER

    def __init__(self, allreduce: Allreduce[T]) -> None:
        super().__init__(allreduce.adapter, allreduce.recording)
        self._allreduce = allreduce

    def run(self, tensor: T, call: Call) -> T:
        self.adapter.check(tensor)
        if len(tensor.shape) == 0:
            raise IndexError("allgather needs a tensor of at least one dimension")
        value: T = ops.synchronize(self._submit([tensor], call, single=True, waits=True))
        return value

    def run_group(self, tensors: Sequence[T], call: Call) -> tuple[T, ...]:
        tensors, _ = check_group(self.adapter, tensors)
        if any(len(tensor.shape) == 0 for tensor in tensors):
            raise IndexError("grouped_allgather needs tensors of at least one dimension")
        values: tuple[T, ...] = ops.synchronize(self._submit(tensors, call, single=False, waits=True))
        return values

    def likely_rows(self, tensor: T, call: Call, own: Fields) -> Optional[int]:
        if len(tensor.shape) == 0:
            return None
        return tensor.shape[0] * size_of(call.process_set)  # most often all ranks have as many

    def save(self, tensor: T, value: T, call: Call) -> int:
        return tensor.shape[0]

    def backward(self, grads: list[T], saved: list[Any], process_set: ProcessSet, single: bool) -> list[T]:
        return [self._own_rows(grad, rows, process_set) for grad, rows in zip(grads, saved)]

    def _own_rows(self, grad: T, rows: int, process_set: ProcessSet) -> T:
        """Returns the gradient of this rank's rows: the average of the ranks' gradients of these rows."""
        count = self.adapter.from_memory(array.array("q", [rows]), 0, ((1,), "int64"))
        counts = [int(one) for one in self.run(count, Call(None, process_set))]
        call = Call(None, process_set, False, AVERAGE)
        averaged = self.recording.run(self._allreduce, grad, call)
        start = sum(counts[: rank_in(process_set)])
        return averaged[start : start + rows]


def check_is_rank(root_rank: object) -> None:
    """Raises TypeError for a value that is not an integer: ctypes and TensorFlow would convert 0.5 to 0."""
    if not hasattr(root_rank, "__index__"):
        raise TypeError(f"root_rank={root_rank!r} is not an integer")


def check_root(root_rank: int, process_set: ProcessSet) -> None:
    """Checks a root rank; joins the world first if this process is deferred. Raises ValueError if the set does not contain the
    rank, TypeError if it is not an integer.
    """
    check_is_rank(root_rank)
    ops.check_ready()
    if process_set is global_process_set:
        is_root = 0 <= root_rank < _process.size()
    else:
        is_root = root_rank in (process_set.ranks or ())
    if not is_root:
        raise ValueError(
            f"broadcast: root rank {root_rank} is not in the process set, whose ranks are "
            f"{_listed(process_set.ranks or [])}"
        )


def _listed(ranks: list[int]) -> str:
    """Returns a short text for sorted ranks."""
    if len(ranks) > 2 and ranks[-1] - ranks[0] == len(ranks) - 1:
        return f"{ranks[0]} to {ranks[-1]}"
    return ", ".join(map(str, ranks))


class Broadcast(PreparedCollective[T]):
    """Gives one rank's tensor to all ranks. Its field is root_rank."""

    name = "broadcast"
    op = _ffi.BROADCAST

    def __init__(self, allreduce: Allreduce[T]) -> None:
        super().__init__(allreduce.adapter, allreduce.recording)
        self._allreduce = allreduce

    def check(self, tensors: list[T], call: Call) -> None:
        check_root(call.fields["root_rank"], call.process_set)

    def requests(self, tensors: list[T], call: Call) -> Requests[T]:
        outputs = tensors
        if not call.in_place:
            outputs = [self._output(tensor, call)[0] for tensor in tensors]
        return Requests(outputs, outputs, [call.fields] * len(outputs))

    def new_output(self, tensor: T, address: int, call: Call) -> Places[T]:
        output, target = self._output(tensor, call)
        assert target is not None  # in host memory as well
        return target, output, target

    def _output(self, tensor: T, call: Call) -> tuple[T, Optional[int]]:
        """Returns a new tensor, which contains the values to be sent on the root, and its address."""
        output, address = self.adapter.empty_like(tensor)
        if _process.rank() == call.fields["root_rank"]:
            self.adapter.assign(output, tensor)
        return output, address

    def backward(self, grads: list[T], saved: list[Any], process_set: ProcessSet, single: bool) -> list[T]:
        averaged = self._allreduce.backward(grads, [AVERAGE], process_set, single)
        if _process.rank() == saved[0]["root_rank"]:
            return averaged
        return [new(self.adapter, kind_of(self.adapter, grad), grad) for grad in averaged]


def _checked_splits(adapter: TensorAdapter[T], tensor: T, splits: Any, size: int) -> list[int]:
    """Returns `splits` as a list; an empty one if there are none and rows are sent evenly."""
    rows = tensor.shape[0] if len(tensor.shape) else 0
    kind = None if splits is None else adapter.kind(splits)
    if kind is not None and (kind[1] != "int32" or len(kind[0]) != 1):
        raise ValueError("alltoall expects splits to be a vector of int32")
    given = [] if splits is None else splits.tolist() if hasattr(splits, "tolist") else splits
    counts = [int(split) for split in given]
    if not counts:
        if rows % size != 0:
            raise ValueError(f"alltoall without splits needs rows that {size} ranks divide, got {rows}")
        return []
    if len(counts) != size:
        raise ValueError(f"alltoall needs {size} splits, got {len(counts)}")
    if min(counts) < 0 or sum(counts) > rows:
        raise ValueError(f"alltoall splits {counts} do not fit the {rows} rows of the tensor")
    if max(counts) > _MOST_ROWS:
        raise ValueError(f"alltoall splits {counts}: a rank can be sent {_MOST_ROWS} rows")
    return counts


class Alltoall(Collective[T, tuple[T, T]]):
    """Sends slices of every rank's tensor to every rank. Its one field is `splits`, those of each tensor. Its values are pairs of
    the rows received and how many came from each rank.
    """

    name = "alltoall"
    op = _ffi.ALLTOALL

    def check(self, tensors: list[T], call: Call) -> None:
        ops.check_ready()
        if len(call.fields["splits"]) != len(tensors):
            raise ValueError(
                "grouped_alltoall needs splits for each of its {} tensors, got {}".format(
                    len(tensors), len(call.fields["splits"])
                )
            )

    def requests(self, tensors: list[T], call: Call) -> Requests[T]:
        size = size_of(call.process_set)
        inputs: list[T] = []
        fields: list[Fields] = []
        for tensor, splits in zip(tensors, call.fields["splits"]):
            counts = _checked_splits(self.adapter, tensor, splits, size)
            # Rows beyond the splits are not sent.
            inputs.append(tensor[: sum(counts)] if counts else tensor)
            fields.append({"splits": counts})
        return Requests(inputs, None, fields)

    def likely_rows(self, tensor: T, call: Call, own: Fields) -> Optional[int]:
        counts = own["splits"]
        if len(tensor.shape) == 0 or any(count != counts[0] for count in counts):
            return None
        return tensor.shape[0]

    def value(self, tensor: T, result: _ffi.Result, call: Call, index: int) -> tuple[T, T]:
        splits = call.fields["splits"][index]
        like = tensor if self.adapter.kind(splits) is None else splits
        received = array.array("i", result.received_splits)
        return tensor, self.adapter.from_memory(received, 0, ((len(received),), "int32"), like)

    def save(self, tensor: T, value: tuple[T, T], call: Call) -> tuple[T, int]:
        return value[1], tensor.shape[0]

    def backward(self, grads: list[T], saved: list[Any], process_set: ProcessSet, single: bool) -> list[T]:
        return [self._sent_back(grad, received, rows, process_set) for grad, (received, rows) in zip(grads, saved)]

    def _sent_back(self, grad: T, received: T, rows: int, process_set: ProcessSet) -> T:
        """Returns the gradient of a tensor with `rows` rows, of which some may not have been sent."""
        call = Call(None, process_set, False, {"splits": [received]})
        sent, _ = self.recording.run(self, grad, call)
        (count, *rest), dtype = kind_of(self.adapter, sent)
        if count == rows:
            return sent
        whole = new(self.adapter, ((rows, *rest), dtype), sent)
        whole[:count] = sent
        return whole


class Reducescatter(_Rows[T]):
    """Reduces tensors over all ranks and gives a part of the rows to each rank."""

    name = "reducescatter"
    op = _ffi.REDUCESCATTER

    def __init__(self, allgather: Allgather[T]) -> None:
        super().__init__(allgather.adapter, allgather.recording)
        self._allgather = allgather

    def check(self, tensors: list[T], call: Call) -> None:
        check_reduction(call.fields["reduction"])
        if call.fields["reduction"] == ops.Adasum:
            raise HorovodRequestError("Reducescatter does not support Adasum.")
        for tensor in tensors:
            if len(tensor.shape) == 0:
                raise ValueError("Reducescatter does not support scalar inputs")

    def likely_rows(self, tensor: T, call: Call, own: Fields) -> Optional[int]:
        rows, size = tensor.shape[0], size_of(call.process_set)
        return rows // size + (rank_in(call.process_set) < rows % size)

    def backward(self, grads: list[T], saved: list[Any], process_set: ProcessSet, single: bool) -> list[T]:
        fields = saved[0]
        factor = fields["prescale"] * fields["postscale"]
        factor *= size_of(process_set) if fields["reduction"] == ops.Sum else 1
        run, call = self.recording.run, Call(None, process_set)
        gathered = [run(self._allgather, grad, call) for grad in grads]
        return gathered if factor == 1 else [grad * factor for grad in gathered]


class Collectives(Generic[T]):
    """All kinds of collectives on one framework's tensors."""

    def __init__(self, adapter: TensorAdapter[T], recording: Optional[Recording[T]] = None) -> None:
        recording = recording or Recording[T]()
        self.allreduce = Allreduce(adapter, recording)
        self.allgather = Allgather(self.allreduce)
        self.broadcast = Broadcast(self.allreduce)
        self.alltoall = Alltoall(adapter, recording)
        self.reducescatter = Reducescatter(self.allgather)
