"""Collectives in programs that XLA compiles: custom calls of libhvd_jax.so.

XLA runs independent operations in any order, and several calls at once. Each call waits for the other ranks, so their order
must be the same on all ranks: the calls of one function are chained by a byte that each passes to the next.
"""

import weakref
from typing import Any, Optional

import numpy

from horovod.common import _process
from horovod.common.exceptions import HorovodInternalError, HorovodRequestError, reported
from horovod.jax import _place
from horovod.jax._kinds import Kind, Settings
from horovod.jax._library import TARGET, ffi, jax, mlir, take_failure

_BYTE = jax.core.ShapedArray((1,), numpy.dtype("uint8"))


class _Program:
    """A program that is being made: the number of its collectives, and the last one's byte."""

    def __init__(self) -> None:
        self.count = 0
        self._byte: Any = None
        self._block: Any = None

    def chain(self) -> list[Any]:
        """Returns the byte that the next collective takes; empty if the last one is in another function."""
        if self._block is None or self._block != mlir.ir.InsertionPoint.current.block:
            return []
        return [self._byte]

    def add(self, byte: Any) -> None:
        self.count += 1
        self._byte, self._block = byte, mlir.ir.InsertionPoint.current.block


_programs: weakref.WeakKeyDictionary[Any, _Program] = weakref.WeakKeyDictionary()
_platforms: set[str] = set()  # on which there are programs with collectives; empty: there is none


def _note_program(platform: str) -> None:
    if not _platforms:
        _process.on_leaving(_wait_for_programs)
        _process.on_later_world(_forget_failure)
        _process.on_end(_failure)
    _platforms.add(platform)


def _wait_for_programs() -> None:
    """Waits for the end of the programs that this thread has started, because JAX returns before. They must not run in another world,
    and the other ranks need them in this one.
    """
    for platform in sorted(_platforms):
        try:
            devices = jax.local_devices(backend=platform)
        except RuntimeError:  # a program that was made for devices that are not here
            continue
        for device in devices:
            jax.block_until_ready(_last(jax.device_put(0, device)))


def _failure() -> Optional[HorovodInternalError]:
    text = take_failure()
    if not text:
        return None
    error = reported(text)
    code = error.code if isinstance(error, HorovodInternalError) else None
    return HorovodInternalError(f"{error} JAX did not report this: no result of that program was read.", code=code)


def _forget_failure() -> None:
    """Forgets a failure, because the script has seen it, or continues from a commit for another reason."""
    take_failure()


@jax.jit  # type: ignore[untyped-decorator]
def _last(number: Any) -> Any:
    """Returns the last program; the programs of a device run one after another."""
    return number + 1


def _platform_of(context: Any) -> str:
    """Returns the platform that a program is for. Raises HorovodRequestError unless it runs on exactly one CPU or CUDA device."""
    axes = context.axis_context
    count = getattr(axes, "num_devices", None)
    if count is None:
        count = axes.mesh.size if hasattr(axes, "mesh") else axes.axis_env.nreps
    if count != 1:
        raise HorovodRequestError(
            f"horovod.jax needs one device per process, but this program (of pmap, shard_map or sharded arrays) runs on "
            f"{count}: start a process for each device."
        )
    if len(context.platforms) != 1 or context.platforms[0] not in ("cpu", "cuda"):
        raise HorovodRequestError(
            f"horovod.jax runs on CPUs or on CUDA within jit, not on {' and '.join(context.platforms)}: call it outside of "
            "jit, where arrays go through host memory."
        )
    return str(context.platforms[0])


def _name(kind: Kind, settings: Settings, program: str, number: int) -> str:
    """Returns the name of an operation. It is the same however often its function is traced, if the program has the same collectives
    before it.
    """
    prefix = "grouped_" if settings.is_group else ""
    return f"{prefix}{kind.name}.{settings.name or f'{program}.{number}'}"


def lower(ctx: Any, *operands: Any, kind: Kind, settings: Settings, shapes: Any) -> list[Any]:
    """Adds the call of a collective to a program."""
    _note_program(_platform_of(ctx.module_context))
    module = ctx.module_context.module
    program = _programs.setdefault(module, _Program())
    title = mlir.ir.StringAttr(module.operation.attributes["sym_name"]).value
    chain = program.chain()
    inner = ctx.replace(
        avals_in=[*ctx.avals_in, *[_BYTE] * len(chain)],
        avals_out=[*ctx.avals_out, _BYTE],
    )
    *results, byte = ffi.ffi_lowering(TARGET, has_side_effect=True)(
        inner,
        *operands,
        *chain,
        op=kind.op,
        name=_name(kind, settings, title, program.count),
        is_group=int(settings.is_group),
        reduction=settings.reduction,
        prescale=float(settings.prescale),
        postscale=float(settings.postscale),
        root_rank=settings.root_rank,
        process_set=_place.process_set_id(settings.process_set),
    )
    program.add(byte)
    return list(results)


def register(primitive: Any) -> None:
    """Registers the lowering of `primitive` to such a call."""
    try:
        # JAX would use one call for several that are alike.
        mlir.register_lowering(primitive, lower, cacheable=False)
    except TypeError:  # versions that do not
        mlir.register_lowering(primitive, lower)
