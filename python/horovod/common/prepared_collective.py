"""Collectives whose results have the shapes of their inputs; these are the most frequent ones in training. Their requests
from host memory are kept, so that a request costs a look-up, and submission and wait are one call.
"""

from collections.abc import Hashable, Sequence

from horovod import _ffi
from horovod.common import ops, process_sets
from horovod.common.collective import Call, Collective, Fields, Recording, names_of, request_of
from horovod.common.tensors import T, TensorAdapter, check_group, kind_of

_MOST_PREPARED = 4096

# What is sent, the output, and where that lies.
Places = tuple[int, T, int]


class PreparedCollective(Collective[T, T]):
    """A kind of collective that keeps its requests. All of its calls have the same fields, in the same order."""

    def __init__(self, adapter: TensorAdapter[T], recording: Recording[T]) -> None:
        super().__init__(adapter, recording)
        self._prepared: dict[tuple[Hashable, ...], _ffi.Prepared] = {}

    def new_output(self, tensor: T, address: int, call: Call) -> Places[T]:
        """Returns a new output for a tensor in host memory, at that address, which must not be overwritten."""
        raise NotImplementedError

    def check_fields(self, fields: Fields) -> None:
        """Raises ValueError for fields that are invalid for any tensors."""

    def run(self, tensor: T, call: Call) -> T:
        address = self.adapter.check(tensor)
        if address is None:
            return super().run(tensor, call)
        process_set_id = process_sets.check(call.process_set)
        self.check([tensor], call)
        source, output, target = address, tensor, address
        if not call.in_place:
            source, output, target = self.new_output(tensor, address, call)
        prepared = self._prepare(tensor, call.fields)
        ops.run(prepared, self.name, call.name, (source, target), (tensor, output), process_set_id)
        return output

    def start(self, tensor: T, call: Call, waits: bool = False) -> int:
        address = self.adapter.check(tensor)
        if address is None:
            return super().start(tensor, call, waits)
        process_set_id = process_sets.check(call.process_set)
        self.check([tensor], call)
        source, output, target = address, tensor, address
        if not call.in_place:
            source, output, target = self.new_output(tensor, address, call)
        memory = self.adapter.on_host(tensor)  # keeps the memory alive independently of the other object
        with ops.naming(self.name, call.name, process_set_id) as name:
            prepared = self._prepare(tensor, call.fields)
            return ops.start(prepared, name, (source, target), output, memory, process_set_id)

    def start_group(self, tensors: Sequence[T], call: Call, waits: bool = False) -> int:
        adapter = self.adapter
        tensors, found = check_group(adapter, tensors)
        if None in found:
            return self._submit(tensors, call, False, waits)
        addresses: list[int] = found  # type: ignore[assignment]  # none is None
        process_set_id = process_sets.check(call.process_set)
        self.check(tensors, call)
        outputs, sources, targets = tensors, addresses, addresses
        if not call.in_place:
            places = [self.new_output(t, address, call) for t, address in zip(tensors, addresses)]
            sources, outputs, targets = map(list, zip(*places))
        memory = [adapter.on_host(tensor) for tensor in tensors]
        keep = call.name is not None and call.name != ""  # there is going to be another one
        with ops.naming("grouped_" + self.name, call.name, process_set_id) as name:
            prepared = self._prepare_group(tensors, name, call.fields, keep)
            return ops.start_group(prepared, sources, targets, tuple(outputs), memory, process_set_id)

    def _prepare(self, tensor: T, fields: Fields) -> _ffi.Prepared:
        """Returns the kept request for a tensor like this one, under any name."""
        key = (tensor.dtype, tensor.shape, tuple(fields.values()))
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = _ffi.Prepared([self._request("", tensor, fields)])
            self._keep(key, prepared)
        return prepared

    def _prepare_group(self, tensors: list[T], name: str, fields: Fields, keep: bool) -> _ffi.Prepared:
        """Returns the requests for a group like this one, under this name. `keep`: they are kept for the next group."""
        like = tuple([(tensor.dtype, tensor.shape) for tensor in tensors])
        key = (name, like, tuple(fields.values()))
        prepared = self._prepared.get(key)
        if prepared is None:
            requests = [
                self._request(one, tensor, fields) for one, tensor in zip(names_of(name, len(tensors)), tensors)
            ]
            prepared = _ffi.Prepared(requests)
            if keep:
                self._keep(key, prepared)
        return prepared

    def _request(self, name: str, tensor: T, fields: Fields) -> _ffi.Request:
        self.check_fields(fields)
        return request_of(name, self.op, kind_of(self.adapter, tensor), 0, 0, fields)

    def _keep(self, key: tuple[Hashable, ...], prepared: _ffi.Prepared) -> None:
        if len(self._prepared) >= _MOST_PREPARED:
            self._prepared.clear()
        self._prepared[key] = prepared
