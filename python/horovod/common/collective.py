"""The framework-independent base of all kinds of collectives.

A framework has one object of each kind, made with its adapter: see :mod:`horovod.common.collective_kinds`. Its public
functions turn their arguments into a :class:`Call`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Callable, Generic, Optional, TypeVar

from horovod import _ffi
from horovod.common import ops, process_sets
from horovod.common.process_sets import ProcessSet
from horovod.common.tensors import (
    DTYPES,
    PARTS,
    DevicePath,
    Kind,
    T,
    TensorAdapter,
    as_real,
    check_group,
    check_reduction_of,
    kind_of,
    new,
    size_of,
)

Fields = Mapping[str, Any]  # of a request: see horovod._ffi.request
Finish = Callable[[int], object]
V = TypeVar("V")  # the value of an operation on one tensor

_NO_FIELDS: Fields = {}
_OF_ROWS = (_ffi.ALLGATHER, _ffi.ALLTOALL, _ffi.REDUCESCATTER)


class Call:
    """The arguments of one operation other than its tensors: the name as the script gave it, or None; and the fields that all
    of its requests have.
    """

    __slots__ = ("fields", "in_place", "name", "process_set")

    def __init__(
        self,
        name: Optional[str],
        process_set: ProcessSet,
        in_place: bool = False,
        fields: Fields = _NO_FIELDS,
    ) -> None:
        self.name = name
        self.process_set = process_set
        self.in_place = in_place
        self.fields = fields


def reduction(
    name: Optional[str],
    process_set: ProcessSet,
    op: int,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    in_place: bool = False,
) -> Call:
    """Returns the :class:`Call` of an operation that reduces by `op`, which may be hvd.Average."""
    fields = {"reduction": op, "prescale": prescale_factor, "postscale": postscale_factor}
    return Call(name, process_set, in_place, fields)


class Requests(Generic[T]):
    """The inputs and outputs of an operation, and further fields of each request."""

    __slots__ = ("fields", "inputs", "outputs")

    def __init__(self, inputs: list[T], outputs: Optional[list[T]], fields: list[Fields]) -> None:
        self.inputs = inputs
        self.outputs = outputs  # None: the runtime's memory; may be the inputs
        self.fields = fields


def names_of(base: str, count: int) -> list[str]:
    """Returns the names of the tensors of a group."""
    return [f"{base}_{i + 1}of{count}" for i in range(count)]


def request_of(name: str, op: int, kind: Kind, source: int, target: int, fields: Fields) -> _ffi.Request:
    """Returns a request for a tensor of that kind at the address `source`. The result goes to the address `target`; 0 stands for
    memory of the runtime. Raises ValueError for complex elements that can't be reduced so, or have no rows.
    """
    check_reduction_of(kind[1], fields.get("reduction", ops.Sum))
    if kind[1] in PARTS and not kind[0] and op in _OF_ROWS:  # the runtime would take the two parts for rows
        raise ValueError("Collectives of rows need a tensor of at least one dimension, got a complex scalar.")
    shape, dtype = as_real(kind)
    return _ffi.request(name, op, DTYPES[dtype], shape, source, target, **fields)


class Recording(Generic[T]):
    """Runs the collectives that compute gradients. A framework that differentiates collectives overrides it, so that these
    collectives have gradients themselves.
    """

    def run(self, collective: "Collective[T, V]", tensor: T, call: Call) -> V:
        """Runs `collective` and returns its value."""
        return collective.run(tensor, call)

    def run_group(self, collective: "Collective[T, V]", tensors: Sequence[T], call: Call) -> tuple[V, ...]:
        """Runs `collective` for several tensors as one operation and returns the values."""
        return collective.run_group(tensors, call)


class Collective(Generic[T, V]):
    """One kind of collective on a framework's tensors.

    Results whose size is known in advance are written to the framework's tensors. All other results are in memory of the
    runtime, from which tensors are made: see :meth:`requests`.
    """

    name = ""  # prefix of its operations' names; a group's has "grouped_" before it
    op = -1  # of _ffi

    def __init__(self, adapter: TensorAdapter[T], recording: Recording[T]) -> None:
        self.adapter = adapter
        self.recording = recording  # runs the collectives of backward()

    # Overridden by each kind of collective.

    def check(self, tensors: list[T], call: Call) -> None:
        """Raises ValueError, or a more specific error, for unsupported tensors or fields."""

    def requests(self, tensors: list[T], call: Call) -> Requests[T]:
        """Returns the requests for these tensors."""
        return Requests(tensors, None, [call.fields] * len(tensors))

    def likely_rows(self, tensor: T, call: Call, own: Fields) -> Optional[int]:
        """Returns the expected number of rows of a result in the runtime's memory; None if unknown. `own` are the fields of the
        tensor's request.
        """
        return None

    def value(self, tensor: T, result: _ffi.Result, call: Call, index: int) -> V:
        """Returns the value that the script gets for result number `index`; `tensor` is a view of that result in the runtime's
        memory.
        """
        raise NotImplementedError

    def save(self, tensor: T, value: V, call: Call) -> Any:
        """Returns what :meth:`backward` needs to know of a tensor and of the operation's value for it."""
        return call.fields

    def backward(self, grads: list[T], saved: list[Any], process_set: ProcessSet, single: bool) -> list[T]:
        """Returns the gradients of the inputs, given those of the results. Runs collectives. `saved` is what :meth:`save` returned
        for each; `single` says that the operation was not a group.
        """
        raise NotImplementedError

    # Common to all kinds.

    def run(self, tensor: T, call: Call) -> V:
        """Runs the collective and returns its value."""
        value: V = ops.synchronize(self.start(tensor, call, waits=True))
        return value

    def start(self, tensor: T, call: Call, waits: bool = False) -> int:
        """Starts the collective and returns its handle, for ops.synchronize. `waits`: the caller calls synchronize next."""
        self.adapter.check(tensor)
        return self._submit([tensor], call, True, waits)

    def begin(self, tensor: T, call: Call) -> ops.Handle[V]:
        """Starts the collective for a script, which may forget the handle; see :meth:`start`."""
        return ops.Handle(self.start(tensor, call))

    def begin_group(self, tensors: Sequence[T], call: Call) -> ops.Handle[tuple[V, ...]]:
        """Starts the collective for several tensors for a script, which may forget the handle; see :meth:`start_group`."""
        return ops.Handle(self.start_group(tensors, call))

    def run_group(self, tensors: Sequence[T], call: Call) -> tuple[V, ...]:
        """Runs the collective for several tensors as one operation and returns the values."""
        values: tuple[V, ...] = ops.synchronize(self.start_group(tensors, call, waits=True))
        return values

    def start_group(self, tensors: Sequence[T], call: Call, waits: bool = False) -> int:
        """Starts the collective for several tensors as one operation and returns its handle; see :meth:`start`."""
        return self._submit(check_group(self.adapter, tensors)[0], call, False, waits)

    def finish(
        self,
        likes: Sequence[tuple[Optional[T], str]],
        call: Call,
        single: bool,
        room: Optional[Sequence[Optional[T]]] = None,
    ) -> Finish:
        """Returns a function that makes the value of an operation whose results are in the runtime's memory or, on a device, perhaps
        in `room`. `likes` has, for each result, the place where it is wanted (as for from_memory) and its dtype.
        """

        def finish(handle: int) -> object:
            owner = _ffi.ResultOwner(handle)
            values = []
            for i, (like, dtype) in enumerate(likes):
                result = _ffi.result(handle, i)
                if room is None or self.adapter.devices is None:
                    tensor = _from_result(self.adapter, result, like, dtype, owner)
                else:
                    assert like is not None  # only what is wanted in host memory has none
                    tensor = self.adapter.devices.from_result(result, like, room[i])
                values.append(self.value(tensor, result, call, i))
            return values[0] if single else tuple(values)

        return finish

    def _submit(self, tensors: list[T], call: Call, single: bool, waits: bool) -> int:
        process_set_id = process_sets.check(call.process_set)
        self.check(tensors, call)
        requests = self.requests(tensors, call)
        kind = self.name if single else "grouped_" + self.name
        with ops.naming(kind, call.name, process_set_id) as base:
            names = [base] if single else names_of(base, len(tensors))
            devices = self.adapter.devices
            if devices is not None and devices.takes(requests.inputs, call.fields):
                return self._submit_on_device(devices, requests, names, call, single, process_set_id)
            return self._submit_on_host(requests, names, call, single, process_set_id, waits)

    def _submit_on_host(
        self,
        requests: Requests[T],
        names: list[str],
        call: Call,
        single: bool,
        process_set_id: int,
        waits: bool,
    ) -> int:
        adapter = self.adapter
        inputs, outputs, fields = requests.inputs, requests.outputs, requests.fields
        sources = [adapter.on_host(tensor) for tensor in inputs]
        # None does not occur for tensors that have passed check().
        kinds: list[Kind] = [adapter.kind(source) for source in sources]  # type: ignore[misc]
        addresses: list[int] = [adapter.address(source) for source in sources]  # type: ignore[misc]
        if outputs is None:
            targets, to = [], [0] * len(sources)
            likes = [_like(adapter, tensor, kind) for tensor, kind in zip(inputs, kinds)]
            finish = self.finish(likes, call, single)
        else:
            targets, to = sources, addresses
            if outputs is not inputs:
                targets = self._targets(sources, outputs)
                to = [adapter.address(target) for target in targets]  # type: ignore[misc]
            finish = self._finish_known(outputs, single, targets)
        made = [request_of(name, self.op, *own) for name, own in zip(names, zip(kinds, addresses, to, fields))]
        return ops.submit(made, finish, (sources, targets), process_set_id, waits)

    def _submit_on_device(
        self,
        devices: DevicePath[T],
        requests: Requests[T],
        names: list[str],
        call: Call,
        single: bool,
        process_set_id: int,
    ) -> int:
        adapter = self.adapter
        inputs, outputs, fields = requests.inputs, requests.outputs, requests.fields
        room: Sequence[Optional[T]]
        if outputs is None:
            ops.check_ready()
            room = self._room(devices, inputs, call, fields)
            likes = [_without_memory(adapter, t, kind_of(adapter, t)) for t in inputs]
            finish = self.finish(likes, call, single, room)
        else:
            room = outputs
            finish = self._finish_known(outputs, single)
        return devices.start(self.op, inputs, room, names, finish, process_set_id, fields)

    def _room(self, devices: DevicePath[T], tensors: list[T], call: Call, fields: list[Fields]) -> list[Optional[T]]:
        """Returns device memory into which the results probably fit."""
        rows = [self.likely_rows(tensor, call, own) for tensor, own in zip(tensors, fields)]
        return [None if count is None else devices.room(t, count) for t, count in zip(tensors, rows)]

    def _targets(self, sources: list[T], outputs: list[T]) -> list[T]:
        """Returns the host tensors that receive the results: the output itself, or its staging copy if the output is on a device."""
        adapter = self.adapter
        return [
            source if adapter.address(output) is None else adapter.on_host(output)
            for source, output in zip(sources, outputs)
        ]

    def _finish_known(self, outputs: list[T], single: bool, targets: Sequence[T] = ()) -> Finish:
        """Returns a function that makes the value of an operation whose results are `outputs`. It first copies results from
        `targets`, the staging copies in host memory, to outputs on a device.
        """
        adapter = self.adapter

        def finish(handle: int) -> object:
            _ffi.release(handle)
            for output, target in zip(outputs, targets):
                if adapter.address(output) is None:
                    adapter.assign(output, target)
            return outputs[0] if single else tuple(outputs)

        return finish


def _like(adapter: TensorAdapter[T], tensor: T, kind: Kind) -> tuple[Optional[T], str]:
    """Returns the place where a result like `tensor` is wanted, as for from_memory, and its dtype."""
    if adapter.address(tensor) is not None:
        return None, kind[1]
    return _without_memory(adapter, tensor, kind)


def _without_memory(adapter: TensorAdapter[T], tensor: T, kind: Kind) -> tuple[T, str]:
    """Returns an empty tensor of the same dtype in the same place, and the dtype, so that the tensor's memory need not be kept."""
    return new(adapter, ((0,), kind[1]), tensor), kind[1]


def _from_result(
    adapter: TensorAdapter[T], result: _ffi.Result, like: Optional[T], dtype: str, owner: _ffi.ResultOwner
) -> T:
    """Returns the runtime's result as a tensor, without a copy if it is wanted in host memory."""
    kind: Kind = (result.shape[:-1] if dtype in PARTS else result.shape, dtype)
    size = size_of(kind)
    if size == 0:
        return new(adapter, kind, like)
    return adapter.from_memory(_ffi.memory(result.address, size, owner), 0, kind, like)
