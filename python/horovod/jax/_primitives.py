"""The collectives as primitives of JAX: how they run, and what they are in each of its transformations."""

from collections.abc import Sequence
from typing import Any

from jax.extend.core import Primitive

from horovod.jax import _host, _kinds, _place, _programs
from horovod.jax._kinds import Kind, Settings
from horovod.jax._library import jax


def bind(kind: Kind, arrays: Sequence[Any], settings: Settings) -> list[Any]:
    """The results of a collective of these arrays, traced or not."""
    for array in arrays:
        _host.check_type(array)
    kind.check(arrays, settings)
    return list(_PRIMITIVE.bind(*arrays, kind=kind, settings=settings, shapes=None))


def _run(*arrays: Any, kind: Kind, settings: Settings, shapes: Any) -> list[Any]:
    results = kind.run([_host.from_jax(array) for array in arrays], settings)
    return [_host.to_jax(result, arrays[0]) for result in results]


def _abstract(*arrays: Any, kind: Kind, settings: Settings, shapes: Any) -> list[Any]:
    if shapes is None:
        rank, size = _place.traced(settings.process_set) if kind.moves_rows else (0, 1)
        shapes = [kind.result_shape(array.shape, settings, rank, size) for array in arrays]
    return [jax.core.ShapedArray(shape, array.dtype) for shape, array in zip(shapes, arrays)]


_PRIMITIVE = Primitive("hvd")
_PRIMITIVE.multiple_results = True
_PRIMITIVE.def_impl(_run)
_PRIMITIVE.def_abstract_eval(_abstract)
_programs.register(_PRIMITIVE)
