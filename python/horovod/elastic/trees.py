"""State dicts: nested dicts, lists and tuples with tensors among their values, taken apart, copied
and put together."""

import copy
import functools
import io
import mmap
import pickle
from collections import OrderedDict
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch

from horovod import _ffi
from horovod.elastic import commit_store

_ALIGNMENT = 64

_NAMES = {value: name for name, value in vars(torch).items() if isinstance(value, torch.dtype)}

# Of a tensor: its shape, and its type's name in torch.
Kind = Tuple[Tuple[int, ...], str]


class Taken(NamedTuple):
    """A tree taken apart; all but the tensors themselves can be sent or kept as it is."""

    schema: bytes  # the tree, pickled, with numbers instead of tensors
    kinds: List[Kind]
    tensors: List[torch.Tensor]


class _Number(NamedTuple):
    """Stands for a tensor."""

    number: int


def is_dict(value: Any) -> bool:
    """Whether `value` is a dict, ordered or not; other subclasses are left as they are."""
    return type(value) in (dict, OrderedDict)


def is_plain(value: Any) -> bool:
    """Whether `value` is a tensor that its shape, type and bytes tell all about."""
    return (
        isinstance(value, torch.Tensor)
        and value.layout == torch.strided
        and not value.is_quantized
    )


def mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    """A copy of `value`, with `function` applied to what is no dict, list or tuple."""
    if is_dict(value):
        return type(value)((key, mapped(item, function)) for key, item in value.items())
    if type(value) in (list, tuple):
        return type(value)(mapped(item, function) for item in value)
    return function(value)


def _tensor(number: int) -> Any:
    """What a schema calls where a tensor belongs; :func:`put_tensors` puts something in its
    place."""
    raise pickle.UnpicklingError("tensor {} of a schema".format(number))


@functools.lru_cache(maxsize=None)
def _taker(by_value: bool) -> type:
    """The class of picklers that take tensors out; `by_value`: also of functions and classes that
    have no name, which is slower."""
    base = pickle.Pickler
    if by_value:
        import cloudpickle  # not before it is needed: it costs imports

        base = cloudpickle.Pickler

    class Taker(base):
        def __init__(self, stream: io.BytesIO) -> None:
            super().__init__(stream, protocol=4)
            self.tensors: List[torch.Tensor] = []

        def reducer_override(self, value: Any) -> Any:
            if is_plain(value):
                tensors = self.tensors
                tensors.append(value)
                return _tensor, (len(tensors) - 1,)
            overridden = getattr(super(), "reducer_override", None)
            return overridden(value) if overridden else NotImplemented

    return Taker


def take_tensors(tree: Any) -> Taken:
    """Takes `tree` apart. Raises whatever its values do if they can't be pickled."""
    try:
        stream = io.BytesIO()
        taker = _taker(by_value=False)(stream)
        taker.dump(tree)
    except commit_store.UNPICKLABLE:
        stream = io.BytesIO()
        taker = _taker(by_value=True)(stream)
        taker.dump(tree)
    names = _NAMES
    kinds = [(tuple(t.shape), names[t.dtype]) for t in taker.tensors]
    return Taken(stream.getvalue(), kinds, taker.tensors)


class _Putter(pickle.Unpickler):
    def __init__(self, schema: bytes, tensor_of: Callable[[int], Any]) -> None:
        super().__init__(io.BytesIO(schema))
        self._tensor_of = tensor_of

    def find_class(self, module: str, name: str) -> Any:
        if name == _tensor.__name__ and module == __name__:
            return self._tensor_of
        return super().find_class(module, name)


def put_tensors(schema: bytes, tensors: Sequence[torch.Tensor]) -> Any:
    """Undoes :func:`take_tensors`."""
    return _Putter(schema, tensors.__getitem__).load()


def new(kind: Kind) -> torch.Tensor:
    """Such a tensor in host memory, of any values."""
    shape, name = kind
    tensor = torch.empty(shape, dtype=getattr(torch, name))
    _ffi.prefer_huge_pages(tensor.data_ptr(), size_of(kind))
    return tensor


def new_together(kinds: Sequence[Kind]) -> Tuple[List[torch.Tensor], Optional[mmap.mmap]]:
    """Such tensors, one behind the other in new memory of the host, and that; None: they have no
    elements. Together they need fewer pages, which can be larger."""
    offsets, size = places([size_of(kind) for kind in kinds])
    memory = _ffi.new_memory(size) if size > 0 else None

    def new_at(kind: Kind, offset: int) -> torch.Tensor:
        shape, name = kind
        dtype = getattr(torch, name)
        count = torch.Size(shape).numel()
        if count == 0:
            return torch.empty(shape, dtype=dtype)
        return torch.frombuffer(memory, dtype=dtype, count=count, offset=offset).reshape(shape)

    return [new_at(kind, offset) for kind, offset in zip(kinds, offsets)], memory


def places(sizes: Sequence[int]) -> Tuple[List[int], int]:
    """Where parts of so many bytes begin in a buffer that holds them all, and how large that is."""
    offsets = []
    end = 0
    for size in sizes:
        offsets.append(end)
        end += -(-size // _ALIGNMENT) * _ALIGNMENT
    return offsets, end


@functools.lru_cache(maxsize=None)
def _empty(name: str) -> torch.Tensor:
    return torch.empty(0, dtype=getattr(torch, name))


def size_of(kind: Kind) -> int:
    """How many bytes such a tensor has."""
    shape, name = kind
    return torch.Size(shape).numel() * _empty(name).element_size()


def views(kinds: Sequence[Kind], buffer: torch.Tensor) -> List[torch.Tensor]:
    """The tensors that lie in `buffer` at their :func:`places`."""
    sizes = [size_of(kind) for kind in kinds]
    return [
        buffer[offset : offset + size].view(getattr(torch, name)).reshape(shape)
        for offset, size, (shape, name) in zip(places(sizes)[0], sizes, kinds)
    ]


def copied_in_one_piece(tensor: torch.Tensor) -> torch.Tensor:
    """A copy that :func:`is_in_one_piece`."""
    return torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor.detach())


def is_in_one_piece(tensor: torch.Tensor) -> bool:
    """Whether the elements lie one after the other, as they are, in host memory."""
    return (
        tensor.is_contiguous()
        and tensor.is_cpu
        and not tensor.is_neg()
        and not (tensor.is_complex() and tensor.is_conj())
    )


def counterparts(schema: bytes, kinds: Sequence[Kind], own: Any) -> Dict[int, torch.Tensor]:
    """Tensors of the tree `own` that are where another tree, taken apart, has one of the same shape
    and type, by the number of the latter."""
    found: Dict[int, torch.Tensor] = {}
    used = set()

    def visit(theirs: Any, mine: Any) -> None:
        if type(theirs) is _Number:
            (number,) = theirs
            if is_plain(mine) and mine.is_contiguous() and mine.data_ptr() not in used:
                if (tuple(mine.shape), _NAMES[mine.dtype]) == kinds[number]:
                    used.add(mine.data_ptr())  # two tensors of theirs may not be one of mine
                    found[number] = mine
        elif is_dict(theirs) and is_dict(mine):
            for key, item in theirs.items():
                visit(item, mine.get(key))
        elif type(theirs) is type(mine) and type(theirs) in (list, tuple):
            for item, own_item in zip(theirs, mine):
                visit(item, own_item)

    visit(_Putter(schema, _Number).load(), own)
    return found


def copied(value: Any, spare: Any = None) -> Any:
    """A copy of `value` in host memory, tensors in the memory of `spare` (an older copy) where they
    fit."""
    if isinstance(value, torch.Tensor):
        fits = (
            is_plain(value)
            and is_plain(spare)
            and spare.shape == value.shape
            and spare.dtype == value.dtype
        )
        if fits:
            return spare.copy_(value.detach())
        if is_plain(value):
            return new((tuple(value.shape), _NAMES[value.dtype])).copy_(value.detach())
        return value.detach().to("cpu", copy=True)
    if is_dict(value):
        spare = spare if is_dict(spare) else {}
        return type(value)((key, copied(item, spare.get(key))) for key, item in value.items())
    if type(value) in (list, tuple):
        if type(spare) is not type(value) or len(spare) != len(value):
            spare = [None] * len(value)
        return type(value)(copied(item, old) for item, old in zip(value, spare))
    return copy.deepcopy(value)
