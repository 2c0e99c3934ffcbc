"""The interface between Horovod and a framework's tensors. With a :class:`TensorAdapter` for it, the collectives and the
elastic states support a framework; :mod:`horovod.numpy` is the example.
"""

import functools
import math
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional, Protocol, TypeVar

from horovod import _ffi

if TYPE_CHECKING:
    from typing_extensions import Buffer

_Own = TypeVar("_Own")


class Tensor(Protocol):
    """What all frameworks' tensors have, and the collectives use."""

    @property
    def shape(self) -> Sequence[int]: ...

    @property
    def dtype(self) -> Hashable: ...

    def __iter__(self) -> Iterator[Any]: ...

    def __getitem__(self: _Own, rows: slice, /) -> _Own: ...

    def __setitem__(self: _Own, rows: slice, values: _Own, /) -> None: ...

    def __mul__(self: _Own, factor: float, /) -> _Own: ...


T = TypeVar("T", bound=Tensor)  # one framework's tensors
Kind = tuple[tuple[int, ...], str]  # a tensor's shape, and its element type by numpy's name

# The element types that collectives take.
DTYPES: dict[str, int] = {
    "uint8": _ffi.UINT8,
    "int8": _ffi.INT8,
    "int16": _ffi.INT16,
    "int32": _ffi.INT32,
    "int64": _ffi.INT64,
    "float16": _ffi.FLOAT16,
    "bfloat16": _ffi.BFLOAT16,
    "float32": _ffi.FLOAT32,
    "float64": _ffi.FLOAT64,
    "bool": _ffi.BOOL,
}
# Complex elements are sent as two real ones, which follow each other in memory.
PARTS: dict[str, str] = {"complex64": "float32", "complex128": "float64"}
TAKEN = f"Collectives take {', '.join([*DTYPES, *PARTS])}."  # for messages


class DevicePath(Protocol[T]):
    """Direct use of tensors in a device's memory by the runtime."""

    def takes(self, tensors: Sequence[T], fields: Mapping[str, object]) -> bool:
        """Returns whether the runtime can use these tensors directly, for an operation whose request has these fields. The answer is
        the same on all ranks whose tensors are alike.
        """

    def stretches(
        self, tensors: Sequence[T], in_one_piece: Callable[[T], T]
    ) -> Optional[Iterator[tuple[list[int], list[int]]]]:
        """Returns an iterator over the bytes of these tensors in host memory, in order, as addresses and sizes; None if it has no better
        way than `in_one_piece`, which copies one tensor. What it yields is valid until the next is asked for. A tensor may be cut at
        multiples of 64 bytes.
        """

    def load(self, pairs: Sequence[tuple[T, T]]) -> list[tuple[T, T]]:
        """Copies host memory to tensors on a device; each pair is a target and its source, of the same kind. Returns the pairs for which
        it has no better way than :meth:`TensorAdapter.assign`.
        """

    def room(self, tensor: T, rows: int) -> Optional[T]:
        """Returns memory for a result with `rows` rows like `tensor`'s; None if there is not enough."""

    def start(
        self,
        op: int,
        tensors: Sequence[T],
        outputs: Sequence[Optional[T]],
        names: Sequence[str],
        finish: Callable[[int], object],
        process_set: int,
        each: Sequence[Mapping[str, Any]],
    ) -> int:
        """Submits `tensors` and returns the handle. A result goes to its output, or to memory of the runtime if that is None or has
        another size. `each`: further fields of each request.
        """

    def from_result(self, result: _ffi.Result, like: T, output: Optional[T]) -> T:
        """Returns the result as a tensor of `like`'s dtype and device; `output` itself if it holds the result."""


class TensorAdapter(Protocol[T]):
    """Operations on a framework's tensors. Wherever memory is given by an address, it is contiguous."""

    @property
    def devices(self) -> Optional[DevicePath[T]]:
        """The path for tensors that need not be copied to host memory; None: all tensors are copied."""

    def check(self, tensor: T) -> Optional[int]:
        """Returns the tensor's :meth:`address`. Raises ValueError if collectives don't support `tensor`."""

    def kind(self, value: object, exact: bool = False) -> Optional[Kind]:
        """Returns the kind of a tensor that is fully described by its kind and its bytes; None for any other value. `exact`: also
        None if anything but the bytes is worth keeping (a subclass, a gradient, a device).
        """

    def address(self, tensor: T) -> Optional[int]:
        """Returns the address of the tensor's bytes in host memory; None if they are elsewhere or not contiguous."""

    def storage(self, tensor: T) -> Optional[Hashable]:
        """Returns an identifier of the memory that :meth:`assign` overwrites, on any device; None if the tensor can't be overwritten
        in place.
        """

    def on_host(self, value: Any) -> Any:
        """Returns a tensor's values in host memory, without a copy if they are there already and stay valid without `value`. Anything
        but a tensor is returned unchanged.
        """

    def empty_like(self, tensor: T) -> tuple[T, Optional[int]]:
        """Returns an uninitialized tensor of the same kind in the same place, and its :meth:`address`."""

    def from_memory(self, memory: "Buffer", offset: int, kind: Kind, like: Optional[T] = None) -> T:
        """Returns a tensor of that kind over a writable buffer, from `offset` on, which it keeps alive. With `like`, a copy in the
        place of that tensor, unless that is in host memory.
        """

    def assign(self, target: T, source: T) -> None:
        """Overwrites `target` with the values of `source`, which has the same kind. Each may be in any place."""


@functools.cache
def itemsize(dtype: str) -> int:
    """Returns the size in bytes of an element of the dtype with this name."""
    if dtype == "bool":
        return 1
    bits = re.match(r"[a-z]+(\d+)", dtype)
    if bits is None:
        raise ValueError(f"{dtype!r} is not a numeric dtype")
    return max(1, int(bits[1]) // 8)


def as_real(kind: Kind) -> Kind:
    """Returns the kind of the real elements that a tensor of this kind is made of: for a complex one with one more dimension, of
    real and imaginary part.
    """
    shape, dtype = kind
    return ((*shape, 2), PARTS[dtype]) if dtype in PARTS else kind


def check_reduction_of(dtype: str, reduction: int) -> None:
    """Raises ValueError for a reduction that is none of each element's parts."""
    if dtype in PARTS and reduction not in (_ffi.SUM, _ffi.AVERAGE):
        raise ValueError(f"{dtype} can be reduced by hvd.Sum and hvd.Average, not by hvd.{_REDUCTIONS[reduction]}")


_REDUCTIONS = {_ffi.ADASUM: "Adasum", _ffi.MIN: "Min", _ffi.MAX: "Max", _ffi.PRODUCT: "Product"}


def size_of(kind: Kind) -> int:
    """Returns the size in bytes of a tensor of this kind."""
    shape, dtype = kind
    return math.prod(shape) * itemsize(dtype)


def new(adapter: TensorAdapter[T], kind: Kind, like: Optional[T] = None) -> T:
    """Returns a tensor of this kind filled with zeros, in host memory or in the place of `like`."""
    return adapter.from_memory(_ffi.zeros(size_of(kind)), 0, kind, like)


def kind_of(adapter: TensorAdapter[T], tensor: T) -> Kind:
    """Returns the kind of a tensor. Raises TypeError for a value that has none."""
    kind = adapter.kind(tensor)
    if kind is None:
        raise TypeError(f"{type(tensor)} is not a tensor that Horovod supports")
    return kind


def check_group(adapter: TensorAdapter[T], tensors: Sequence[T]) -> tuple[list[T], list[Optional[int]]]:
    """Returns the tensors of a grouped operation, and their addresses in host memory. Raises ValueError if there are none, or
    collectives don't support one of them.
    """
    tensors = list(tensors)
    if not tensors:
        raise ValueError("A grouped operation needs at least one tensor.")
    return tensors, [adapter.check(tensor) for tensor in tensors]
