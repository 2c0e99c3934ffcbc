"""State dicts: nested dicts, lists and tuples with tensors among their values, and functions to take them apart, copy them and
reassemble them.
"""

import copy
import functools
import io
import mmap
import pickle
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, Callable, NamedTuple, Optional

from horovod import _ffi
from horovod.common.tensors import Kind, Tensor, TensorAdapter, kind_of, new, size_of
from horovod.elastic import commit_store

_ALIGNMENT = 64
# Where schemas of earlier versions have _tensor.
_EARLIER_MODULES = ("horovod.torch._trees",)


class Taken(NamedTuple):
    """A tree taken apart. All parts except the tensors can be sent or stored as they are."""

    schema: bytes  # the tree, pickled, with numbers instead of tensors
    kinds: list[Kind]
    tensors: list[Tensor]


class _Number(NamedTuple):
    """The number of a tensor, in its place in a tree."""

    number: int


def is_dict(value: object) -> bool:
    """Returns whether `value` is a dict or an OrderedDict; other subclasses are leaves."""
    return type(value) in (dict, OrderedDict)


def mapped(value: Any, function: Callable[[Any], object]) -> Any:
    """Returns a copy of `value`, with `function` applied to the leaves: all values except dicts, lists and tuples."""
    if is_dict(value):
        return type(value)((key, mapped(item, function)) for key, item in value.items())
    if type(value) in (list, tuple):
        return type(value)(mapped(item, function) for item in value)
    return function(value)


def leaves_of(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the leaves, as :func:`mapped` has them, with their places, such as "['state'][0]"."""
    if is_dict(value):
        for key, item in value.items():
            yield from leaves_of(item, f"{place}[{key!r}]")
    elif type(value) in (list, tuple):
        for number, item in enumerate(value):
            yield from leaves_of(item, f"{place}[{number}]")
    else:
        yield place, value


def places(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Returns the offsets of parts of these sizes in a buffer that holds all of them, and the buffer's size."""
    offsets = []
    end = 0
    for size in sizes:
        offsets.append(end)
        end += -(-size // _ALIGNMENT) * _ALIGNMENT
    return offsets, end


def _tensor(number: int) -> object:
    """The placeholder of a tensor in a schema; :func:`put_tensors` replaces it."""
    raise pickle.UnpicklingError(f"tensor {number} of a schema")


@functools.cache
def _taker(by_value: bool) -> type:
    """Returns the class of picklers that take tensors out. `by_value`: it also pickles functions and classes without a name, which
    is slower.
    """
    base: Any = pickle.Pickler
    if by_value:
        import cloudpickle  # not before it is needed: it costs imports

        base = cloudpickle.Pickler

    class Taker(base):  # type: ignore[misc]  # which of the two is known when it is made
        def __init__(self, stream: io.BytesIO, adapter: TensorAdapter[Any]) -> None:
            super().__init__(stream, protocol=4)
            self.tensors: list[Tensor] = []
            self.kinds: list[Kind] = []
            self._kind = adapter.kind

        def reducer_override(self, value: Any) -> Any:
            kind = self._kind(value)
            if kind is not None:
                self.kinds.append(kind)
                self.tensors.append(value)
                return _tensor, (len(self.tensors) - 1,)
            overridden = getattr(super(), "reducer_override", None)
            return overridden(value) if overridden else NotImplemented

    return Taker


class _Putter(pickle.Unpickler):
    def __init__(self, schema: bytes, tensor_of: Callable[[int], Any]) -> None:
        super().__init__(io.BytesIO(schema))
        self._tensor_of = tensor_of

    def find_class(self, module: str, name: str) -> object:
        if name == _tensor.__name__ and module in (__name__, *_EARLIER_MODULES):
            return self._tensor_of
        return super().find_class(module, name)


def put_tensors(schema: bytes, tensors: Sequence[Tensor]) -> Any:
    """Undoes :meth:`Trees.take_tensors`."""
    return _Putter(schema, tensors.__getitem__).load()


class Trees:
    """Operations on trees of a framework's tensors."""

    def __init__(self, adapter: TensorAdapter[Any]) -> None:
        self.adapter = adapter

    def take_tensors(self, tree: object) -> Taken:
        """Takes `tree` apart. Raises whatever its values raise if they can't be pickled."""
        try:
            return self._taken(tree, by_value=False)
        except commit_store.UNPICKLABLE:
            return self._taken(tree, by_value=True)

    def _taken(self, tree: object, by_value: bool) -> Taken:
        stream = io.BytesIO()
        taker = _taker(by_value)(stream, self.adapter)
        taker.dump(tree)
        return Taken(stream.getvalue(), taker.kinds, taker.tensors)

    def new_together(self, kinds: Sequence[Kind]) -> tuple[list[Tensor], Optional[mmap.mmap]]:
        """Returns new tensors of these kinds in one new block of host memory, and the block; None if they have no elements. One block
        needs fewer pages, which can be larger.
        """
        size = places([size_of(kind) for kind in kinds])[1]
        memory = _ffi.new_memory(size) if size > 0 else None
        return self.views(kinds, memory), memory

    def views(self, kinds: Sequence[Kind], memory: Any) -> list[Tensor]:
        """Returns the tensors that are in a buffer at their :func:`places`."""
        offsets = places([size_of(kind) for kind in kinds])[0]
        from_memory = self.adapter.from_memory
        return [from_memory(memory, offset, kind) for kind, offset in zip(kinds, offsets)]

    def in_one_piece(self, tensor: Tensor) -> Tensor:
        """Returns the tensor, or a contiguous copy in host memory if it is not contiguous there."""
        if self.adapter.address(tensor) is not None:
            return tensor
        whole: Tensor = new(self.adapter, kind_of(self.adapter, tensor))
        self.adapter.assign(whole, tensor)
        return whole

    def addresses(self, tensors: Sequence[Tensor]) -> list[int]:
        """Returns the addresses of these tensors, each of which is :meth:`in_one_piece`."""
        return [self.adapter.address(tensor) for tensor in tensors]  # type: ignore[misc]  # None for others only

    def stretches(self, tensors: Sequence[Tensor], kinds: Sequence[Kind]) -> Iterator[tuple[list[int], list[int]]]:
        """Yields the bytes of these tensors, of these kinds, in host memory, in order, as addresses and sizes. They are valid until the
        next are asked for. Copies from a device overlap with the caller's work.
        """
        devices = self.adapter.devices
        arriving = None if devices is None else devices.stretches(tensors, self.in_one_piece)
        if arriving is not None:
            yield from arriving
            return
        whole = [self.in_one_piece(tensor) for tensor in tensors]
        yield self.addresses(whole), [size_of(kind) for kind in kinds]

    def counterparts(self, schema: bytes, kinds: Sequence[Kind], own: Any) -> dict[int, Tensor]:
        """Returns the tensors of the tree `own` at whose positions another tree, taken apart, has one of the same shape and dtype, by
        the number of the latter.
        """
        found: dict[int, Tensor] = {}
        used = set()

        def visit(theirs: Any, mine: Any) -> None:
            if type(theirs) is _Number:
                (number,) = theirs
                if self.adapter.kind(mine) == kinds[number]:
                    storage = self.adapter.storage(mine)
                    if storage is not None and storage not in used:
                        used.add(storage)  # two tensors of theirs may not be one of mine
                        found[number] = mine
            elif is_dict(theirs) and is_dict(mine):
                for key, item in theirs.items():
                    visit(item, mine.get(key))
            elif type(theirs) is type(mine) and type(theirs) in (list, tuple):
                for item, own_item in zip(theirs, mine):
                    visit(item, own_item)

        visit(_Putter(schema, _Number).load(), own)
        return found

    def copied(self, value: Any, spare: Any = None) -> Any:
        """Returns a copy of `value`. Tensors reuse the memory of `spare`, an older copy or what is to be overwritten, where they fit; all
        others are in host memory.
        """
        pairs: list[tuple[Tensor, Tensor]] = []
        copied = self._copied(value, spare, pairs)
        devices = self.adapter.devices
        for target, source in pairs if devices is None else devices.load(pairs):
            self.adapter.assign(target, source)
        return copied

    def _copied(self, value: Any, spare: Any, pairs: list[tuple[Tensor, Tensor]]) -> Any:
        """As :meth:`copied`, but only adds the copies of tensors, target and source, to `pairs`."""
        if is_dict(value):
            spare = spare if is_dict(spare) else {}
            return type(value)((key, self._copied(item, spare.get(key), pairs)) for key, item in value.items())
        if type(value) in (list, tuple):
            if type(spare) is not type(value) or len(spare) != len(value):
                spare = [None] * len(value)
            return type(value)(self._copied(item, old, pairs) for item, old in zip(value, spare))
        kind = self.adapter.kind(value)
        if kind is None:
            return copy.deepcopy(self.adapter.on_host(value))
        target = spare if self.adapter.kind(spare) == kind else new(self.adapter, kind)
        pairs.append((target, value))
        return target
