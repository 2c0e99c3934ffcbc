"""The file of a checkpoint: a header in JSON and, after it, tensors as raw bytes, each with a
checksum.

    magic, format version, header's CRC32, header's size     24 bytes, little-endian
    header: {"commit", "world", "job", "before", "size" of what follows, "state",
             "sections": [{kind, offset, size, crc, ...}]}
    sections, each at a multiple of 64 bytes

In "state" dicts, lists, tuples and scalars are JSON (see _encode); tensors, long lists of numbers
and pickles refer to a section. Only values that are none of these are pickled.

Format 1, which is read as well, had neither world, job and before, nor sections of numbers. Format 2 had no run: a checkpoint of
the script's first run still has that format.
"""

import array
import json
import os
import pickle
import stat
import struct
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Optional

from horovod import _ffi
from horovod.common.tensors import Kind, Tensor, size_of
from horovod.elastic import owners
from horovod.elastic.trees import Trees, is_dict

if TYPE_CHECKING:
    from horovod._ffi._memory import SizedBuffer

    _Section = tuple[dict[str, Any], SizedBuffer]  # what it is, and its bytes

_MAGIC = b"HVDCKPT\n"
_VERSION = 3
_VERSION_OF_FIRST_RUN = 2
_READ = (1, 2, 3)
_PREFIX = struct.Struct("<8sIIQ")
_ALIGNMENT = 64
_MAX_HEADER = 1 << 30
_LONG = 1000  # items, from which on a list of numbers has its own section


class Damaged(Exception):
    """A file is not a complete checkpoint; the message says why."""


class Unreadable(ValueError):
    """A file is complete, but a value in it can't be unpickled by this process; the message says which file, and why."""


class Origin(NamedTuple):
    """The commit in a file, and the job and world that made it."""

    commit: int
    world: int = 0  # grows with every world that writes, across jobs too
    job: str = ""
    before: int = 0  # the newest world of the jobs before this one; `world` counts on from there
    run: int = 1  # of the script: see horovod.elastic.runs
    script: str = ""  # the name of the script's file; "": unknown


class Checkpoint(NamedTuple):
    """The content of a file."""

    path: str
    origin: Origin
    values: dict[str, Any]
    trees: dict[str, Any]
    past: Sequence[bytes] = ()  # what is known of the runs before this one

    @property
    def commit(self) -> int:
        return self.origin.commit


# State to JSON. A node is a list: its kind, then its content.


def _encode(value: Any, sections: list["_Section"], trees: Trees) -> list[object]:
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return ["value", value]
    if kind is float:
        return ["float", value.hex()]
    if is_dict(value):
        items = [[_encode(part, sections, trees) for part in item] for item in value.items()]
        return ["dict" if kind is dict else "ordered", items]
    if kind in (list, tuple):
        numbers = _as_array(value) if len(value) >= _LONG else None
        if numbers is not None:
            sections.append(({"kind": "numbers", "code": numbers.typecode}, _buffer(numbers)))
            return [kind.__name__ + " of numbers", ["section", len(sections) - 1]]
        return [kind.__name__, [_encode(item, sections, trees) for item in value]]
    tensor = trees.adapter.kind(value, exact=True)
    if tensor is not None:
        shape, dtype = tensor
        what = {"kind": "tensor", "dtype": dtype, "shape": list(shape)}
        sections.append((what, _bytes_of(value, tensor, trees)))
        return ["section", len(sections) - 1]
    import cloudpickle  # not before it is needed: it costs imports

    sections.append(({"kind": "pickle"}, cloudpickle.dumps(value)))
    return ["section", len(sections) - 1]


def _decode(node: list[Any], sections: list[object]) -> Any:
    kind, what = node
    if kind == "section":
        return sections[what]
    if kind in ("dict", "ordered"):
        pairs = [(_decode(k, sections), _decode(v, sections)) for k, v in what]
        return dict(pairs) if kind == "dict" else OrderedDict(pairs)
    if kind in ("list of numbers", "tuple of numbers"):
        numbers = _decode(what, sections).tolist()
        return numbers if kind.startswith("list") else tuple(numbers)
    if kind in ("list", "tuple"):
        items = [_decode(item, sections) for item in what]
        return items if kind == "list" else tuple(items)
    return float.fromhex(what) if kind == "float" else what


def _as_array(values: Sequence[object]) -> Optional["array.array[Any]"]:
    """Returns the values as an array if all are integers of at most 64 bits, or all are floats."""
    kinds = set(map(type, values))
    try:
        if kinds == {int}:
            return array.array("q", values)
        return array.array("d", values) if kinds == {float} else None
    except OverflowError:
        return None


def _buffer(numbers: "array.array[Any]") -> memoryview:
    return memoryview(numbers).cast("B")


def _bytes_of(tensor: Tensor, kind: Kind, trees: Trees) -> "SizedBuffer":
    """Returns the tensor's bytes as a buffer, without a copy if the tensor is contiguous."""
    if size_of(kind) == 0:
        return b""
    tensor = trees.in_one_piece(tensor)
    return _ffi.memory(trees.addresses([tensor])[0], size_of(kind), tensor)


def write(
    trees: Trees,
    file: BinaryIO,
    origin: Origin,
    values: dict[str, Any],
    state_dicts: dict[str, Any],
    past: Sequence[bytes] = (),
) -> None:
    """Writes a checkpoint to `file`, which is open for writing and empty. Raises OSError, and whatever pickling raises; ValueError
    if everything except tensors and long lists of numbers exceeds the limit of a header.
    """
    sections: list[_Section] = []
    state = _encode({"values": values, "trees": state_dicts, "past": list(past)}, sections, trees)
    offset = 0  # relative to the end of the header until its size is known
    for what, data in sections:
        what.update(offset=offset, size=len(data), crc=zlib.crc32(data))
        offset += -(-len(data) // _ALIGNMENT) * _ALIGNMENT
    header = {**origin._asdict(), "size": offset, "state": state}
    header["sections"] = [what for what, _ in sections]
    text = json.dumps(header).encode()
    text += b" " * (-(_PREFIX.size + len(text)) % _ALIGNMENT)
    if len(text) > _MAX_HEADER:
        raise ValueError(
            f"its header would have {len(text)} bytes, more than {_MAX_HEADER}: keep in tensors what is large, or in "
            "lists of numbers of one type"
        )
    version = _VERSION_OF_FIRST_RUN if origin.run <= 1 else _VERSION
    file.write(_PREFIX.pack(_MAGIC, version, zlib.crc32(text), len(text)))
    file.write(text)
    for _, data in sections:
        file.write(data)
        file.write(bytes(-len(data) % _ALIGNMENT))


def read(trees: Trees, path: str) -> Checkpoint:
    """Reads a checkpoint. Nothing is unpickled before all checksums are verified.

    Raises:
      OSError: it can't be read.
      Damaged: it is incomplete, of another version, or of another user in a folder that all users may write to.
      Unreadable: a value in it can't be unpickled here.
    """
    with open(path, "rb", opener=_open_regular) as file:
        return read_from(trees, file, os.fstat(file.fileno()).st_size, path)


def read_from(trees: Trees, file: BinaryIO, size: int, path: str) -> Checkpoint:
    """Reads a checkpoint of `size` bytes from a file that is open at its beginning. Raises as :func:`read`."""
    header, start = _read_header(file)
    if size - start != header["size"]:
        raise Damaged("{} of its {} bytes are there".format(size - start, header["size"]))
    raw = [_read_section(file, start, what) for what in header["sections"]]
    sections = [_opened(data, what, trees, path) for data, what in zip(raw, header["sections"])]
    state = _decode(header["state"], sections)
    return Checkpoint(path, _origin(header), state["values"], state["trees"], state.get("past", ()))


def read_origin(path: str) -> Origin:
    """Returns a checkpoint's origin, from its header alone. Raises as :func:`read`."""
    with open(path, "rb", opener=_open_regular) as file:
        return read_origin_from(file)


def read_origin_from(file: BinaryIO) -> Origin:
    """Returns a checkpoint's origin from a file that is open at its beginning. Raises as :func:`read`."""
    return _origin(_read_header(file)[0])


def _open_regular(path: str, flags: int) -> int:
    """An opener for open() that opens regular files only, because opening a FIFO would block, and none of a stranger or through a
    stranger's link. Raises OSError, Damaged."""
    try:
        descriptor = owners.opened(path, flags | os.O_NONBLOCK)
    except owners.Stranger as error:
        raise Damaged(str(error)) from None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise Damaged("it is not a regular file")


def _origin(header: dict[str, Any]) -> Origin:
    return Origin(**{name: header[name] for name in Origin._fields if name in header})


def _read_header(file: BinaryIO) -> tuple[dict[str, Any], int]:
    prefix = file.read(_PREFIX.size)
    if len(prefix) < _PREFIX.size:
        raise Damaged("it ends within its header")
    magic, version, crc, size = _PREFIX.unpack(prefix)
    if magic != _MAGIC:
        raise Damaged("it is not a checkpoint of Horovod")
    if version not in _READ:
        raise Damaged(f"it has format {version}, this Horovod reads up to {_VERSION}")
    text = file.read(size) if size <= _MAX_HEADER else b""
    if len(text) != size:
        raise Damaged("it ends within its header")
    if zlib.crc32(text) != crc:
        raise Damaged("its header does not match its checksum")
    return json.loads(text), _PREFIX.size + size


def _read_section(file: BinaryIO, start: int, what: dict[str, Any]) -> object:
    data = _ffi.zeros(what["size"])
    file.seek(start + what["offset"])
    if _read_into(file, data) != what["size"]:
        raise Damaged("it ends within its data")
    if zlib.crc32(data) != what["crc"]:
        raise Damaged("a {} in it does not match its checksum".format(what["kind"]))
    return data


def _read_into(file: BinaryIO, data: Any) -> int:
    read: int = file.readinto(data)  # type: ignore[attr-defined]  # the files of typing have none
    return read


def _opened(data: Any, what: dict[str, Any], trees: Trees, path: str) -> object:
    """Returns the content of a section. Raises Unreadable."""
    if what["kind"] == "tensor":
        return trees.adapter.from_memory(data, 0, (tuple(what["shape"]), what["dtype"]))
    if what["kind"] == "numbers":
        return array.array(what["code"], bytes(data))
    try:
        return pickle.loads(data)
    except Exception as error:  # of any class, such as one that has moved or lost an attribute
        raise Unreadable(
            f"checkpoint {path} has a value that can't be unpickled here: {type(error).__name__}: {error}"
        ) from error
