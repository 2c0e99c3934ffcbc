"""Operations within functions that XLA compiles (``jit_compile=True``), as custom calls."""

from collections.abc import Sequence
from typing import Any

from horovod import _ffi
from horovod.common.exceptions import HorovodRequestError
from horovod.common.tensors import DTYPES
from horovod.tensorflow._library import missing_for_xla, tf

try:
    from tensorflow.python.framework import ops as graphs
    from tensorflow.python.ops import control_flow_util
except ImportError:
    control_flow_util = None

_NAMES = {_ffi.ALLREDUCE: "allreduce", _ffi.BROADCAST: "broadcast"}


def is_compiling() -> bool:
    """Returns whether operations made now become part of a program that XLA compiles."""
    if control_flow_util is None or tf.executing_eagerly():
        return False
    return bool(control_flow_util.GraphOrParentsInXlaContext(graphs.get_default_graph()))


def refuse(kind: str) -> None:
    """Raises HorovodRequestError within a function that XLA compiles, because the size of `what`'s result is unknown there."""
    if is_compiling():
        raise HorovodRequestError(
            f"{kind} can't be compiled by XLA: only allreduce and broadcast can. Call it outside of functions with "
            "jit_compile=True (Keras: compile(jit_compile=False))."
        )


def _describe(name: str, op: int, tensors: Sequence[Any], **fields: Any) -> str:
    """Returns the description of an operation; see XlaOperation in frameworks/tensorflow/xla_call.h."""
    words = [op, fields.get("reduction", _ffi.SUM), fields.get("prescale_factor", 1.0)]
    words += [fields.get("postscale_factor", 1.0), fields.get("root_rank", 0), fields["process_set"], len(tensors)]
    for tensor in tensors:
        words += [DTYPES[tensor.dtype.name], len(tensor.shape), *tensor.shape]
    return " ".join(str(word) for word in words) + " " + name


def run(name: str, op: int, tensors: Sequence[Any], **fields: Any) -> list[Any]:
    """Returns the results of an allreduce or a broadcast, with the shapes and dtypes of `tensors`. All tensors are one call, which
    waits. Raises HorovodRequestError if XLA can't call it.
    """
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops

    missing = missing_for_xla()
    if missing:
        raise HorovodRequestError(f"{_NAMES[op]} can't be compiled by XLA in this build of TensorFlow: {missing}.")
    for tensor in tensors:
        if not tensor.shape.is_fully_defined() or tensor.dtype.name not in DTYPES:
            raise HorovodRequestError(
                f"{_NAMES[op]} of a tensor of type {tensor.dtype.name} and shape {tensor.shape} can't be compiled by "
                "XLA: the shape must be known. Use jit_compile=False."
            )
    return list(
        gen_xla_ops.xla_custom_call_v2(
            operands=list(tensors),
            call_target_name="hvd_collective",
            backend_config=_describe(name, op, tensors, **fields),
            has_side_effect=True,
            result_dtypes=[tensor.dtype for tensor in tensors],
            result_shapes=[tensor.shape for tensor in tensors],
        )
    )
