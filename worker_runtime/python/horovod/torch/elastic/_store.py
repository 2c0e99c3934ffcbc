"""Commits in memory that belongs to the agent: they outlive this process, and the process that
takes its place finds them. There is none without an agent, nor in a job that is not elastic.

A commit there is the length of a pickle as 8 bytes, little-endian; the pickle of the values and of
the state dicts, with places instead of tensors; and from the next multiple of 64 bytes on the
tensors.
"""

import pickle
import struct
import sys
import weakref
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import cloudpickle
import torch

from horovod import _ffi
from horovod.torch import _trees

_LENGTH = struct.Struct("<Q")
_ALIGNMENT = 64

_owner: Optional["weakref.ref[Any]"] = None
_warned = False


class Placed:
    """A commit in the store: sealed, or about to be."""

    def __init__(self, address: int) -> None:
        self.address = address
        self._contents: Optional[Tuple[Dict[str, Any], Dict[str, Any]]] = None

    def contents(self) -> Tuple[Dict[str, Any], Dict[str, Any]]:
        """Values and state dicts; the latter's tensors are views of the store."""
        if self._contents is None:
            (length,) = _LENGTH.unpack(_ffi.memory(self.address, _LENGTH.size))
            pickled = _ffi.memory(self.address + _LENGTH.size, length)
            values, schema, size = pickle.loads(pickled)
            start = self.address + _aligned(_LENGTH.size + length)
            if size > 0:
                buffer = torch.frombuffer(_ffi.memory(start, size), dtype=torch.uint8)
            else:
                buffer = _trees.new_buffer(0)
            self._contents = (values, _trees.put_tensors(schema, buffer))
        return self._contents


class PlacedTree(NamedTuple):
    """One of the state dicts of a commit in the store."""

    commit: Placed
    name: str

    def tree(self) -> Any:
        return self.commit.contents()[1][self.name]


class Inherited(NamedTuple):
    """What the process before this one has left."""

    number: int
    commit: Placed


def inherited() -> Optional[Inherited]:
    """The newest commit of the process that was here before. REQUIRES: this one has made none."""
    found = _ffi.store_newest()
    return Inherited(found.number, Placed(found.address)) if found else None


def place(
    owner: Any, values: Dict[str, Any], trees: Dict[str, Any], keep: Optional[Placed]
) -> Optional[Placed]:
    """Copies a commit into the store, all but :func:`seal`, and leaves the commit `keep` alone.
    None if it can't be kept there; if that is no matter of course, one line on stderr says why.

    The store keeps the commits of one object, the first that asks.
    """
    global _owner
    if _owner is None or _owner() is None:
        _owner = weakref.ref(owner)
    if _owner() is not owner:
        return None
    try:
        return _place(values, trees, keep)
    except Exception as error:  # whatever can't be pickled, or no memory: the training goes on
        _warn_once(error)
        return None


def seal(number: int) -> None:
    """Makes what was placed last the newest commit."""
    _ffi.store_seal(number)


def _place(
    values: Dict[str, Any], trees: Dict[str, Any], keep: Optional[Placed]
) -> Optional[Placed]:
    schema, packed, size = _trees.take_tensors(trees)
    pickled = _pickled((values, schema, size))
    head = _LENGTH.pack(len(pickled)) + pickled
    address = _ffi.store_begin(_aligned(len(head)) + size, keep.address if keep else 0)
    if address is None:
        return None
    tensors = [_in_one_piece(tensor) for _, tensor in packed]
    addresses: List[int] = [_ffi.address_of(head)]
    addresses += [tensor.data_ptr() for tensor in tensors]
    sizes = [len(head)] + [tensor.numel() * tensor.element_size() for tensor in tensors]
    _ffi.store_append(addresses, sizes)
    return Placed(address)


def _pickled(contents: Any) -> bytes:
    try:
        return pickle.dumps(contents, protocol=4)
    except Exception:  # functions and classes that have no name
        return cloudpickle.dumps(contents)


def _in_one_piece(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor`, or a copy, with its elements one after the other in host memory."""
    tensor = tensor.detach()
    if tensor.is_cpu and tensor.is_contiguous() and not tensor.is_neg() and not tensor.is_conj():
        return tensor
    return torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _warn_once(error: BaseException) -> None:
    global _warned
    if not _warned:
        _warned = True
        reason = (str(error) or type(error).__name__).splitlines()[0]
        text = "commits will not outlive this process: {}".format(reason)
        print("Horovod: " + text, file=sys.stderr, flush=True)
