"""The collectives as a primitive of JAX: how it runs, and its rules for JAX's transformations."""

from collections.abc import Sequence
from typing import Any, Optional

import numpy

from horovod.common import ops
from horovod.common.exceptions import HorovodRequestError
from horovod.jax import _host, _place, _programs
from horovod.jax._kinds import Kind, Settings, Shape
from horovod.jax._library import Primitive, ad, batching, jax, partial_eval

_FLOAT0 = jax.dtypes.float0
_ShapedArray = jax.core.ShapedArray


def bind(kind: Kind, arrays: Sequence[Any], settings: Settings) -> list[Any]:
    """Returns the results of a collective on these arrays, traced or not. Raises ValueError for invalid arguments."""
    arrays = [array if isinstance(array, jax.Array) else jax.numpy.asarray(array) for array in arrays]
    for array in arrays:
        _host.check_type(array.dtype, kind.only_moves)
    kind.check(arrays, settings)
    results = list(_primitive.bind(*map(_parts, arrays), kind=kind, settings=settings, shapes=None))
    for i, array in enumerate(arrays):
        if _is_complex(array):
            results[i] = jax.lax.complex(results[i][..., 0], results[i][..., 1])
    return results


def _is_complex(array: Any) -> bool:
    return bool(jax.numpy.iscomplexobj(array))


def _parts(array: Any) -> Any:
    """Returns the real and imaginary parts of a complex array, in a further dimension; another array unchanged."""
    return jax.numpy.stack([array.real, array.imag], -1) if _is_complex(array) else array


# Each of the following takes the primitive's parameters. `shapes` are those of the results, if they
# are known; else all ranks have arrays of the same shapes.


def _run(*arrays: Any, kind: Kind, settings: Settings, shapes: Optional[tuple[Shape, ...]]) -> list[Any]:
    """Returns the results for arrays that are not traced."""
    if kind.is_for_devices(arrays, settings):
        results = kind.run(arrays, settings, on_device=True)
        return [_host.to_jax(result, arrays[0]) if isinstance(result, numpy.ndarray) else result for result in results]
    own = [_host.from_jax(array) for array in arrays]
    results = kind.run([_host.as_known(array) for array in own], settings)
    for i, array in enumerate(own):
        results[i] = results[i].view(array.dtype)
    return [_host.to_jax(result, arrays[0]) for result in results]


def _abstract(*arrays: Any, kind: Kind, settings: Settings, shapes: Optional[tuple[Shape, ...]]) -> list[Any]:
    """Returns the shapes and dtypes of the results."""
    _place.process_set_id(settings.process_set)
    if shapes is None:
        rank, size = _place.traced(settings.process_set) if kind.moves_rows else (0, 1)
        shapes = tuple(kind.result_shape(array.shape, settings, rank, size) for array in arrays)
    return [_ShapedArray(shape, array.dtype) for shape, array in zip(shapes, arrays)]


def _tangents(
    primals: Sequence[Any], tangents: Sequence[Any], *, kind: Kind, settings: Settings, shapes: Any
) -> tuple[list[Any], list[Any]]:
    """Returns the results and their tangents, which the same collective computes from those of the arrays."""
    results = _primitive.bind(*primals, kind=kind, settings=settings, shapes=shapes)
    known = [i for i, tangent in enumerate(tangents) if type(tangent) is not ad.Zero]
    of_tangents = settings
    if settings.splits is not None:  # the gradient goes back to where the rows came from
        of_tangents = settings._replace(received=tuple(results[1].tolist()))
    moved = _primitive.bind(
        *[tangents[i] for i in known],
        kind=kind,
        settings=of_tangents,
        shapes=tuple(results[i].shape for i in known),
    )
    found: list[Any] = [_zero_tangent(result) for result in results]
    for i, tangent in zip(known, moved):
        found[i] = tangent
    return results, found


def _zero_tangent(result: Any) -> Any:
    is_real = jax.numpy.issubdtype(result.dtype, jax.numpy.inexact)
    return ad.Zero(_ShapedArray(result.shape, result.dtype if is_real else _FLOAT0))


def _transpose(cotangents: Sequence[Any], *arrays: Any, kind: Kind, settings: Settings, shapes: Any) -> list[Any]:
    """Returns the gradients of the arrays, given those of the results."""
    known = [i for i in range(len(arrays)) if type(cotangents[i]) is not ad.Zero]
    shapes = [arrays[i].aval.shape for i in known]
    grads = kind.backward(bind, [cotangents[i] for i in known], [shape[:1] and shape[0] for shape in shapes], settings)
    found: list[Any] = [ad.Zero(array.aval) for array in arrays]
    for i, grad in zip(known, grads):
        found[i] = grad
    return found


def _batch(
    arrays: Sequence[Any], dims: Sequence[Optional[int]], *, kind: Kind, settings: Settings, shapes: Any
) -> tuple[list[Any], list[Optional[int]]]:
    """Returns the results for batches of arrays, whose batch dimensions are in `dims`: one collective on the whole batches. Ranks
    have batches of the same size.
    """
    if settings.reduction == ops.Adasum and kind.name == "allreduce":
        raise HorovodRequestError("allreduce by Adasum can't be vmapped: it is not the same for each element.")
    if settings.splits is not None:
        raise HorovodRequestError("alltoall with splits can't be vmapped.")
    if kind.moves_rows:  # which stay the first dimension
        arrays = [array if dim is None else jax.numpy.moveaxis(array, dim, 1) for array, dim in zip(arrays, dims)]
        dims = [None if dim is None else 1 for dim in dims]
    return _primitive.bind(*arrays, kind=kind, settings=settings, shapes=None), list(dims)


def _needed(used: Sequence[bool], equation: Any) -> tuple[list[bool], Any]:
    """Keeps the equation and all its arrays, even if no result is used here: other ranks may use theirs."""
    return [True] * len(equation.invars), equation


_primitive = Primitive("horovod")
_primitive.multiple_results = True
_primitive.def_impl(_run)
_primitive.def_abstract_eval(_abstract)
ad.primitive_jvps[_primitive] = _tangents
ad.primitive_transposes[_primitive] = _transpose
batching.primitive_batchers[_primitive] = _batch
partial_eval.dce_rules[_primitive] = _needed
if hasattr(jax.core, "outfeed_primitives"):  # versions that ask for no such rule if nothing uses the results
    jax.core.outfeed_primitives.add(_primitive)
_programs.register(_primitive)
