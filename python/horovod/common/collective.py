"""What all kinds of collectives share, whatever framework the tensors are of.

A framework has one object of each kind, made with its adapter: see
:mod:`horovod.common.collectives`. Its public functions turn their arguments into a :class:`Call`.
"""

from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from horovod import _ffi
from horovod.common import ops, process_sets
from horovod.common.process_sets import ProcessSet
from horovod.common.tensors import DTYPES, Kind, Tensor, TensorAdapter, check_group, new, size_of

Fields = Mapping[str, Any]  # of a request: see horovod._ffi.request
Finish = Callable[[int], Any]


class Call(NamedTuple):
    """The arguments of one operation, beside its tensors."""

    name: Any  # as users give it, or None
    process_set: ProcessSet
    in_place: bool = False
    fields: Fields = {}  # that all of its requests have


def names_of(base: str, count: int) -> List[str]:
    """The names of the tensors of a group."""
    return ["{}_{}of{}".format(base, i + 1, count) for i in range(count)]


def request_of(
    adapter: TensorAdapter, name: str, op: int, source: Tensor, target: Tensor, fields: Fields
) -> _ffi.Request:
    """A request of a tensor in host memory. `target`: of the result; None: the runtime's memory."""
    shape, dtype = adapter.kind(source)
    return _ffi.request(
        name,
        op,
        DTYPES[dtype],
        input_address=adapter.address(source),
        output_address=0 if target is None else adapter.address(target),
        **{"shape": shape, **fields},
    )


class Recording:
    """Runs the collectives of gradients. A framework that records how values come about, for
    gradients of gradients, overrides it."""

    def run(self, collective: "Collective", tensor: Tensor, call: Call) -> Any:
        """Runs `collective`; returns its value."""
        return collective.run(tensor, call)

    def run_group(
        self, collective: "Collective", tensors: Sequence[Tensor], call: Call
    ) -> List[Any]:
        """The same for several tensors, which become ready together."""
        return collective.run_group(tensors, call)


class Collective:
    """One kind of collective, of a framework's tensors.

    Results whose size is known before lie in tensors of the framework's, all others in memory of
    the runtime's, which tensors are made of: see :meth:`memory`.
    """

    name = ""  # of its operations, before the user's; a group's has "grouped_" in front
    op = -1  # of _ffi

    def __init__(self, adapter: TensorAdapter, recording: Recording) -> None:
        self.adapter = adapter
        self.recording = recording  # by which backward runs collectives

    # What a kind of collective says of itself.

    def check(self, tensors: List[Tensor], call: Call) -> None:
        """Raises ValueError, or what fits better, for tensors or fields that it can't take."""

    def memory(
        self, tensors: List[Tensor], call: Call
    ) -> Tuple[List[Tensor], Optional[List[Tensor]]]:
        """What is sent, and what the results go to; None: to memory of the runtime's."""
        return tensors, None

    def requests(self, tensors: List[Tensor], call: Call) -> List[Fields]:
        """The fields of each tensor's request."""
        return [call.fields] * len(tensors)

    def likely_rows(self, tensor: Tensor, call: Call, own: Fields) -> Optional[int]:
        """How many rows a result in the runtime's memory probably has; None: nobody knows. `own`
        are the fields of the tensor's request."""
        return None

    def value(self, tensor: Tensor, result: _ffi.Result, call: Call, index: int) -> Any:
        """What users get for result number `index`, which is in the runtime's memory: `tensor`."""
        return tensor

    def save(self, tensor: Tensor, value: Any, call: Call) -> Any:
        """What :meth:`backward` needs to know of a tensor and the operation's value for it."""
        return call.fields

    def backward(
        self, grads: List[Tensor], saved: List[Any], process_set: ProcessSet, single: bool
    ) -> List[Tensor]:
        """The gradients of the inputs from those of the results; `saved` is what :meth:`save` gave
        for each, `single`: they were no group. Runs collectives."""
        raise NotImplementedError

    # What all of them do.

    def run(self, tensor: Tensor, call: Call) -> Any:
        """Runs it and returns its value."""
        return ops.synchronize(self.start(tensor, call, waits=True))

    def start(self, tensor: Tensor, call: Call, waits: bool = False) -> int:
        """Starts it and returns its handle, for ops.synchronize. `waits`: which is called next."""
        self.adapter.check(tensor)
        return self._submit([tensor], call, True, waits)

    def run_group(self, tensors: Sequence[Tensor], call: Call) -> List[Any]:
        """:meth:`run` for several tensors, which become ready together."""
        return ops.synchronize(self.start_group(tensors, call, waits=True))

    def start_group(self, tensors: Sequence[Tensor], call: Call, waits: bool = False) -> int:
        """:meth:`start` for several tensors, which become ready together."""
        return self._submit(check_group(self.adapter, tensors), call, False, waits)

    def finish(
        self,
        tensors: List[Tensor],
        call: Call,
        single: bool,
        room: Optional[Sequence[Optional[Tensor]]] = None,
    ) -> Finish:
        """Makes the value of an operation on `tensors` whose results are in the runtime's memory
        or, on a device, perhaps in `room`."""
        adapter = self.adapter
        # Type and place of the inputs are needed, not their memory.
        likes = [_without_memory(adapter, tensor) for tensor in tensors]

        def finish(handle: int) -> Any:
            owner = _ffi.ResultOwner(handle)
            values = []
            for i, (like, dtype) in enumerate(likes):
                result = _ffi.result(handle, i)
                if room is None:
                    tensor = _from_result(adapter, result, like, dtype, owner)
                else:
                    tensor = adapter.devices.from_result(result, like, room[i])
                values.append(self.value(tensor, result, call, i))
            return values[0] if single else values

        return finish

    def _submit(self, tensors: List[Tensor], call: Call, single: bool, waits: bool) -> int:
        process_set_id = process_sets.check(call.process_set)
        self.check(tensors, call)
        inputs, outputs = self.memory(tensors, call)
        each = self.requests(inputs, call)
        kind = self.name if single else "grouped_" + self.name
        with ops.naming(kind, call.name, process_set_id) as base:
            names = [base] if single else names_of(base, len(inputs))
            devices = self.adapter.devices
            if devices is not None and devices.takes(inputs, call.fields):
                if outputs is None:
                    ops.check_ready()
                    outputs = self._room(inputs, call, each)
                    finish = self.finish(inputs, call, single, outputs)
                else:
                    finish = self._finish_known(outputs, single)
                return devices.start(self.op, inputs, outputs, names, finish, process_set_id, each)
            sources = [self.adapter.on_host(tensor) for tensor in inputs]
            if outputs is None:
                targets = [None] * len(sources)
                finish = self.finish(inputs, call, single)
            else:
                targets = self._targets(sources, outputs)
                finish = self._finish_known(outputs, single, targets)
            requests = [
                request_of(self.adapter, name, self.op, source, target, own)
                for name, source, target, own in zip(names, sources, targets, each)
            ]
            return ops.submit(requests, finish, (sources, targets), process_set_id, waits)

    def _room(
        self, tensors: List[Tensor], call: Call, each: List[Fields]
    ) -> List[Optional[Tensor]]:
        """Device memory where the results are likely to fit."""
        rows = [self.likely_rows(tensor, call, own) for tensor, own in zip(tensors, each)]
        room = self.adapter.devices.room
        return [None if count is None else room(t, count) for t, count in zip(tensors, rows)]

    def _targets(self, sources: List[Tensor], outputs: List[Tensor]) -> List[Tensor]:
        """Where the results of what is in host memory go: a staged tensor's to its copy."""
        adapter = self.adapter
        return [
            source if adapter.address(output) is None else adapter.on_host(output)
            for source, output in zip(sources, outputs)
        ]

    def _finish_known(
        self, outputs: List[Tensor], single: bool, targets: Sequence[Tensor] = ()
    ) -> Finish:
        """Makes the value of an operation whose results are `outputs`, once what is on a device is
        copied there from `targets`, the host's copies."""
        adapter = self.adapter
        staged = [pair for pair in zip(outputs, targets) if adapter.address(pair[0]) is None]

        def finish(handle: int) -> Any:
            _ffi.release(handle)
            for output, target in staged:
                adapter.assign(output, target)
            return outputs[0] if single else outputs

        return finish


def _without_memory(adapter: TensorAdapter, tensor: Tensor) -> Tuple[Tensor, str]:
    """A tensor of the same type in the same place, which keeps no device memory, and the type."""
    _, dtype = adapter.kind(tensor)
    if adapter.address(tensor) is None:
        tensor = new(adapter, ((0,), dtype), tensor)
    return tensor, dtype


def _from_result(
    adapter: TensorAdapter, result: _ffi.Result, like: Tensor, dtype: str, owner: _ffi.ResultOwner
) -> Tensor:
    """The runtime's result as a tensor; without a copy if `like` is in host memory."""
    kind: Kind = (result.shape, dtype)
    if 0 in result.shape:
        return new(adapter, kind, like)
    memory = _ffi.memory(result.address, size_of(kind), owner)
    return adapter.from_memory(memory, 0, kind, like)
