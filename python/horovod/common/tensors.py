"""What Horovod needs to know of a framework's tensors: once it has a :class:`TensorAdapter`, the
collectives and elastic states work with them. :mod:`horovod.numpy` is the example."""

import functools
import math
import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Optional, Protocol

from horovod import _ffi

Tensor = Any  # of the framework; has `shape` and `dtype`
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
TAKEN = f"Collectives take {', '.join(DTYPES)}."  # for messages


class DevicePath(Protocol):
    """Tensors in a device's memory that the runtime takes where they are."""

    def takes(self, tensors: Sequence[Tensor], fields: Mapping[str, Any]) -> bool:
        """Whether it takes these, for an operation with these fields of a request. The same on all
        ranks whose tensors are alike."""

    def room(self, tensor: Tensor, rows: int) -> Optional[Tensor]:
        """Memory for a result of so many rows like `tensor`'s; None if there is not so much."""

    def start(
        self,
        op: int,
        tensors: Sequence[Tensor],
        outputs: Sequence[Optional[Tensor]],
        names: Sequence[str],
        finish: Any,
        process_set: int,
        each: Sequence[Mapping[str, Any]],
    ) -> int:
        """Hands over `tensors`, whose results go to `outputs` or, where that is None or has another
        size, to memory of the runtime's. `each`: further fields of each request."""

    def from_result(self, result: _ffi.Result, like: Tensor, output: Optional[Tensor]) -> Tensor:
        """The result as a tensor of `like`'s type and device; `output` itself if it holds the result."""


class TensorAdapter(Protocol):
    """A framework's tensors. Memory is contiguous wherever it is addressed."""

    @property
    def devices(self) -> Optional[DevicePath]:
        """Of tensors that need not go through host memory; None: all do."""

    def check(self, tensor: Tensor) -> Optional[int]:
        """Raises ValueError if collectives can't take `tensor`. Its :meth:`address`."""

    def kind(self, value: Any, exact: bool = False) -> Optional[Kind]:
        """The kind of a tensor that its kind and bytes describe fully; None for any other value.
        `exact`: and that nothing but its bytes is worth keeping of (no subclass, no gradient, in
        host memory)."""

    def address(self, tensor: Tensor) -> Optional[int]:
        """Where its bytes lie in host memory; None if they don't, one after the other."""

    def storage(self, tensor: Tensor) -> Optional[Hashable]:
        """What identifies the memory that :meth:`assign` overwrites, on any device; None if the
        tensor can't be overwritten in place."""

    def on_host(self, value: Any) -> Any:
        """A tensor's values in host memory: without a copy if they are there already and remain
        valid without `value`. Anything but a tensor is returned unchanged."""

    def empty_like(self, tensor: Tensor) -> tuple[Tensor, Optional[int]]:
        """A tensor of the same kind in the same place, of any values, and its :meth:`address`."""

    def from_memory(self, memory: Any, offset: int, kind: Kind, like: Tensor = None) -> Tensor:
        """A tensor of that kind over a writable buffer, from `offset` on; it keeps the buffer.
        `like`: a copy where that tensor is, unless that is in host memory."""

    def assign(self, target: Tensor, source: Tensor) -> None:
        """Overwrites `target` with the values of `source`, of the same kind, wherever each is."""


@functools.cache
def itemsize(dtype: str) -> int:
    """How many bytes an element of that type has, by its name."""
    if dtype == "bool":
        return 1
    bits = re.match(r"[a-z]+(\d+)", dtype)
    if bits is None:
        raise ValueError(f"{dtype!r} is no type of numbers")
    return max(1, int(bits[1]) // 8)


def size_of(kind: Kind) -> int:
    """How many bytes such a tensor has."""
    shape, dtype = kind
    return math.prod(shape) * itemsize(dtype)


def new(adapter: TensorAdapter, kind: Kind, like: Tensor = None) -> Tensor:
    """Such a tensor of zeros in host memory, or where `like` is."""
    return adapter.from_memory(_ffi.zeros(size_of(kind)), 0, kind, like)


def kind_of(adapter: TensorAdapter, tensor: Tensor) -> Kind:
    """The kind of a tensor of which it is known that it has one. Raises TypeError for anything
    else."""
    kind = adapter.kind(tensor)
    if kind is None:
        raise TypeError(f"{type(tensor)} is no tensor that Horovod knows")
    return kind


def check_group(adapter: TensorAdapter, tensors: Sequence[Tensor]) -> tuple[list[Tensor], list[Optional[int]]]:
    """The tensors of a grouped operation, and their addresses in host memory. Raises ValueError if
    there are none, or one is no tensor for collectives."""
    tensors = list(tensors)
    if not tensors:
        raise ValueError("A grouped operation needs at least one tensor.")
    return tensors, [adapter.check(tensor) for tensor in tensors]
