"""Allreduce: the collective that trainings call most. Requests from host memory are prepared, so
that making one costs a look-up, and waiting is part of the call that submits it."""

from typing import Any, Dict, List, Optional, Sequence, Tuple

from horovod import _ffi
from horovod.common import ops, process_sets
from horovod.common.collective import Call, Collective, Fields, Recording, names_of, request_of
from horovod.common.process_sets import ProcessSet
from horovod.common.tensors import Tensor, TensorAdapter, check_group

_MOST_PREPARED = 4096


def check_reduction(reduction: int) -> None:
    """Raises ValueError if it is none."""
    if reduction not in ops.REDUCTIONS:
        raise ValueError(
            "op={!r} is not one of hvd.Average, Sum, Adasum, Min, Max, Product".format(reduction)
        )


def _values(fields: Fields) -> Tuple[int, float, float]:
    return fields["reduction"], float(fields["prescale"]), float(fields["postscale"])


class Allreduce(Collective):
    """Reduces tensors over all ranks, to all ranks."""

    name = "allreduce"
    op = _ffi.ALLREDUCE

    def __init__(self, adapter: TensorAdapter, recording: Recording) -> None:
        super().__init__(adapter, recording)
        self._prepared: Dict[tuple, _ffi.Prepared] = {}

    def check(self, tensors: List[Tensor], call: Call) -> None:
        check_reduction(call.fields["reduction"])

    def memory(
        self, tensors: List[Tensor], call: Call
    ) -> Tuple[List[Tensor], Optional[List[Tensor]]]:
        return tensors, tensors if call.in_place else list(map(self.adapter.empty_like, tensors))

    def backward(
        self, grads: List[Tensor], saved: List[Any], process_set: ProcessSet, single: bool
    ) -> List[Tensor]:
        call = Call(None, process_set, False, saved[0])
        if single:
            return [self.recording.run(self, grads[0], call)]
        return self.recording.run_group(self, grads, call)

    def run(self, tensor: Tensor, call: Call) -> Any:
        self.adapter.check(tensor)
        source = self.adapter.address(tensor)
        if source is None:
            return super().run(tensor, call)
        name, process_set, in_place, fields = call
        process_set_id = process_sets.check(process_set)
        check_reduction(fields["reduction"])
        output, target = (tensor, source) if in_place else self._new_output(tensor)
        prepared = self._prepare(tensor, fields)
        ops.run(prepared, self.name, name, (source, target), (tensor, output), process_set_id)
        return output

    def start(self, tensor: Tensor, call: Call, waits: bool = False) -> int:
        self.adapter.check(tensor)
        address = self.adapter.address(tensor)
        if address is None:
            return super().start(tensor, call, waits)
        name, process_set, in_place, fields = call
        process_set_id = process_sets.check(process_set)
        check_reduction(fields["reduction"])
        output, target = (tensor, address) if in_place else self._new_output(tensor)
        source = self.adapter.on_host(tensor)  # stays there, whatever becomes of the other
        with ops.naming(self.name, name, process_set_id) as name:
            prepared = self._prepare(tensor, fields)
            return ops.start(prepared, name, (address, target), output, source, process_set_id)

    def start_group(self, tensors: Sequence[Tensor], call: Call, waits: bool = False) -> int:
        adapter = self.adapter
        tensors = check_group(adapter, tensors)
        inputs = [adapter.address(tensor) for tensor in tensors]
        if None in inputs:
            return super().start_group(tensors, call, waits)
        name, process_set, in_place, fields = call
        process_set_id = process_sets.check(process_set)
        check_reduction(fields["reduction"])
        outputs, targets = tensors, inputs
        if not in_place:
            outputs = [adapter.empty_like(tensor) for tensor in tensors]
            targets = [adapter.address(output) for output in outputs]
        sources = [adapter.on_host(tensor) for tensor in tensors]
        keep = name is not None and name != ""  # there is going to be another one of this name
        with ops.naming("grouped_allreduce", name, process_set_id) as name:
            prepared = self._prepare_group(tensors, name, fields, keep)
            return ops.start_group(prepared, inputs, targets, outputs, sources, process_set_id)

    def _new_output(self, tensor: Tensor) -> Tuple[Tensor, Optional[int]]:
        output = self.adapter.empty_like(tensor)
        return output, self.adapter.address(output)

    def _prepare(self, tensor: Tensor, fields: Fields) -> _ffi.Prepared:
        """An allreduce of a tensor like this one, by any name."""
        key = (tensor.dtype, tensor.shape, *_values(fields))
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = _ffi.Prepared([self._request("", tensor, fields)])
            self._keep(key, prepared)
        return prepared

    def _prepare_group(
        self, tensors: List[Tensor], name: str, fields: Fields, keep: bool
    ) -> _ffi.Prepared:
        """An allreduce of a group like this one, by this name; `keep`: for the next one."""
        like = tuple([(tensor.dtype, tensor.shape) for tensor in tensors])
        key = (name, like, *_values(fields))
        prepared = self._prepared.get(key)
        if prepared is None:
            requests = [
                self._request(one, tensor, fields)
                for one, tensor in zip(names_of(name, len(tensors)), tensors)
            ]
            prepared = _ffi.Prepared(requests)
            if keep:
                self._keep(key, prepared)
        return prepared

    def _request(self, name: str, tensor: Tensor, fields: Fields) -> _ffi.Request:
        return request_of(self.adapter, name, self.op, tensor, None, fields)

    def _keep(self, key: tuple, prepared: _ffi.Prepared) -> None:
        if len(self._prepared) >= _MOST_PREPARED:
            self._prepared.clear()
        self._prepared[key] = prepared
