"""The collectives on TensorFlow's tensors: in eager execution, in tf.function, in graphs of tf.compat.v1 and, where it is
documented, in functions that XLA compiles.

Tensors are of uint8, int8, int16, int32, int64, bool, float16, bfloat16, float32, float64, complex64 or complex128; complex
ones are reduced by hvd.Sum and hvd.Average only. Operations that do not reduce also take uint16. Operations are
differentiable. The ranks may issue them in different orders, because operations are matched by their names: `name`,
preceded by its name scope unless `ignore_name_scope`. Without a name, operations are counted; in a graph they are named
after their tensors.

Raises:
  tf.errors.OpError: the text contains "HorovodRequestError: " if the ranks' requests do not match, and
    "HorovodInternalError: " if Horovod is not initialized or the world is broken.
  TypeError: `process_set` is not registered.
"""

from collections.abc import Sequence
from typing import Any, Optional

from horovod import _ffi
from horovod.common import _built, _essentials, _process, ops, process_sets
from horovod.common._built import *
from horovod.common._essentials import *
from horovod.common.basics import is_homogeneous
from horovod.common.collective_kinds import check_is_rank, check_reduction
from horovod.common.exceptions import HorovodRequestError
from horovod.common.ops import Sum
from horovod.common.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from horovod.common.tensors import check_reduction_of
from horovod.common.util import get_average_backwards_compatibility_fun, is_elastic
from horovod.common.util import num_rank_is_power_2 as check_num_rank_power_of_2
from horovod.tensorflow import _xla
from horovod.tensorflow._library import functions, not_converted, tf
from horovod.tensorflow._queries import local_rank_op, local_size_op, process_set_included_op, rank_op, size_op
from horovod.tensorflow.util import check_group, gradient_name, tensor_of

__all__ = [
    *_built.__all__,
    *_essentials.__all__,
    "ProcessSet",
    "add_process_set",
    "allgather",
    "alltoall",
    "broadcast",
    "broadcast_",
    "check_num_rank_power_of_2",
    "global_process_set",
    "grouped_allgather",
    "handle_average_backwards_compatibility",
    "is_homogeneous",
    "join",
    "local_rank_op",
    "local_size_op",
    "process_set_included_op",
    "rank_op",
    "remove_process_set",
    "size_op",
]

handle_average_backwards_compatibility = get_average_backwards_compatibility_fun()

Name = Optional[str]

# Unnamed operations of eager execution share this many names in turn. A gradient has the name of its operation, so
# a GradientTape may record this many before two of its gradients have one name.
_EAGER_NAMES = 64


def _name(kind: str, tensors: Sequence[Any], name: Name, ignore_name_scope: bool, process_set: int) -> str:
    """Returns the operation's name, which is the same on all ranks, however often its function is traced."""
    if tf.executing_eagerly():
        with ops.naming(kind, name, process_set) as full:
            return full if name else _one_of_few(full)
    if name is not None and ignore_name_scope:
        return f"{kind}.{name}"
    if name is None:
        name = _name_of(tensors[0]) if tensors else "noname"
    # Not used in this graph so far: a graph may have several of one name.
    return f"{kind}.{tf.compat.v1.get_default_graph().unique_name(name)}"


def _one_of_few(name: str) -> str:
    """Replaces the number at the end of `name` by one below `_EAGER_NAMES`, because TensorFlow caches a function for each name
    that is executed eagerly, and never drops it.
    """
    prefix, _, number = name.rpartition(".")
    return f"{prefix}.{int(number) % _EAGER_NAMES}"


def _name_of(tensor: Any) -> str:
    """Returns a name made from a tensor in a graph. A tensor from outside of the graph has no name, or a number that differs
    between ranks; it is called "noname".
    """
    name = str(getattr(tensor, "name", "noname")).replace(":", "_")
    return "noname" if name.split("_")[0].isdigit() else name


def _waits() -> int:
    """Returns 1 if the calling thread may wait for operations made now, which is faster than a callback, else 0."""
    return int(tf.executing_eagerly())


def _tensors(values: Sequence[Any]) -> list[Any]:
    check_group(values)
    if not values:
        raise ValueError("A grouped operation needs at least one tensor.")
    return [tensor_of(value) for value in values]


def _parts(tensor: Any, of_rows: bool = False) -> Any:
    """Returns the real and imaginary parts of a complex tensor, in a further dimension; another tensor unchanged. Raises ValueError
    for a complex scalar, if the operation is one `of_rows`.
    """
    if not tensor.dtype.is_complex:
        return tensor
    if of_rows and tensor.shape.rank == 0:
        raise ValueError("Operations on rows need a tensor of at least one dimension, got a complex scalar")
    return tf.stack([tf.math.real(tensor), tf.math.imag(tensor)], -1)


def _joined(result: Any, tensor: Any) -> Any:
    """Returns the result for `tensor`, whose parts an operation has used."""
    return tf.complex(result[..., 0], result[..., 1]) if tensor.dtype.is_complex else result


def _reduce(tensors: list[Any], name: str, op: int, prescale: float, postscale: float, process_set: int) -> list[Any]:
    fields = dict(reduction=op, prescale_factor=prescale, postscale_factor=postscale, process_set=process_set)
    if not _xla.is_compiling():
        return list(functions.horovod_allreduce(tensors, tensor_name=name, waits=_waits(), **fields))

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def compiled(*inputs: Any) -> Any:
        def gradient(*grads: Any) -> Any:
            return _reduce(list(grads), gradient_name(name), op, prescale, postscale, process_set)

        return _xla.run(name, _ffi.ALLREDUCE, inputs, **fields), gradient

    return list(compiled(*tensors))


def _reduce_group(
    tensors: Sequence[Any],
    name: Name,
    op: int,
    prescale_factor: float,
    postscale_factor: float,
    ignore_name_scope: bool,
    process_set: ProcessSet,
    grouped: bool,
) -> list[Any]:
    check_reduction(op)
    process_set_id = process_sets.check(process_set)
    inputs = _tensors(tensors)
    for tensor in inputs:
        check_reduction_of(tensor.dtype.name, op)
    full = _name("grouped_allreduce" if grouped else "allreduce", inputs, name, ignore_name_scope, process_set_id)
    reduced = _reduce([*map(_parts, inputs)], full, op, prescale_factor, postscale_factor, process_set_id)
    return [*map(_joined, reduced, inputs)]


@not_converted
def _allreduce(
    tensor: Any,
    name: Name = None,
    op: int = Sum,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Reduces the ranks' tensors, of the same shape and dtype. XLA can compile it."""
    scales = prescale_factor, postscale_factor
    return _reduce_group([tensor], name, op, *scales, ignore_name_scope, process_set, grouped=False)[0]


@not_converted
def _grouped_allreduce(
    tensors: Sequence[Any],
    name: Name = None,
    op: int = Sum,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """Reduces several tensors, of any dtypes, as one operation."""
    scales = prescale_factor, postscale_factor
    return _reduce_group(tensors, name, op, *scales, ignore_name_scope, process_set, grouped=True)


@not_converted
def allgather(
    tensor: Any,
    name: Name = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Concatenates the ranks' tensors on the first dimension, in rank order.

    Args:
      tensor: a tensor with at least one dimension. Only the first dimension may differ between ranks.
      name: the operation's name, the same on all ranks.
      ignore_name_scope: whether TensorFlow's name scope is left out of the name.
      process_set: the ranks that take part.

    Returns:
      The concatenated tensor, the same on all ranks.

    Example:
      >>> import tensorflow as tf
      >>> hvd.allgather(tf.constant([1, 2])).numpy().tolist()
      [1, 2]
    """
    return _gather([tensor], name, ignore_name_scope, process_set, grouped=False)[0]


@not_converted
def grouped_allgather(
    tensors: Sequence[Any],
    name: Name = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """Gathers several tensors as one operation: none is gathered before all are ready on all ranks.

    Args:
      tensors: at least one tensor, each as for :func:`allgather`.
      name, ignore_name_scope, process_set: as for :func:`allgather`.

    Returns:
      The list of the concatenated tensors.
    """
    return _gather(tensors, name, ignore_name_scope, process_set, grouped=True)


def _gather(
    tensors: Sequence[Any], name: Name, ignore_name_scope: bool, process_set: ProcessSet, grouped: bool
) -> list[Any]:
    _xla.refuse("allgather")
    process_set_id = process_sets.check(process_set)
    inputs = _tensors(tensors)
    parts = [_parts(tensor, of_rows=True) for tensor in inputs]
    full = _name("grouped_allgather" if grouped else "allgather", inputs, name, ignore_name_scope, process_set_id)
    gathered = functions.horovod_allgather(parts, tensor_name=full, process_set=process_set_id, waits=_waits())
    return [*map(_joined, gathered, inputs)]


def _send(tensors: list[Any], name: str, root_rank: int, process_set: int) -> list[Any]:
    fields = dict(root_rank=root_rank, process_set=process_set)
    if not _xla.is_compiling():
        return list(functions.horovod_broadcast(tensors, tensor_name=name, waits=_waits(), **fields))

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def compiled(*inputs: Any) -> Any:
        def gradient(*grads: Any) -> Any:
            if is_elastic():  # XLA has no operation that reads the rank at run time
                raise HorovodRequestError(
                    "The gradient of broadcast in a function compiled by XLA would go to the wrong rank once ranks have "
                    "changed: use jit_compile=False in an elastic job."
                )
            averaged = _reduce(list(grads), gradient_name(name), ops.Average, 1.0, 1.0, process_set)
            is_root = _process.rank() == root_rank
            return averaged if is_root else [tf.zeros_like(grad) for grad in averaged]

        return _xla.run(name, _ffi.BROADCAST, inputs, **fields), gradient

    return list(compiled(*tensors))


def _broadcast_group(
    tensors: Sequence[Any],
    root_rank: int,
    name: Name,
    ignore_name_scope: bool,
    process_set: ProcessSet,
    grouped: bool,
) -> list[Any]:
    check_is_rank(root_rank)
    process_set_id = process_sets.check(process_set)
    inputs = _tensors(tensors)
    full = _name("grouped_broadcast" if grouped else "broadcast", inputs, name, ignore_name_scope, process_set_id)
    sent = _send([*map(_parts, inputs)], full, root_rank, process_set_id)
    return [*map(_joined, sent, inputs)]


@not_converted
def broadcast(
    tensor: Any,
    root_rank: int,
    name: Name = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Returns rank `root_rank`'s tensor on all ranks. XLA can compile it.

    Args:
      tensor: on the root the values to send. Shape and dtype are the same on all ranks.
      root_rank: the root's rank in the world, also with a process set.
      name, ignore_name_scope, process_set: as for :func:`allgather`.

    Returns:
      A tensor with the root's values.

    Example:
      >>> import tensorflow as tf
      >>> hvd.broadcast(tf.constant([1.5]), root_rank=0).numpy().tolist()
      [1.5]
    """
    return _broadcast_group([tensor], root_rank, name, ignore_name_scope, process_set, grouped=False)[0]


@not_converted
def broadcast_(
    variables: Sequence[Any],
    root_rank: int,
    name: Name = None,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """Overwrites variables with those of rank `root_rank`, as one operation.

    Args:
      variables: tf.Variables. Their number, shapes and dtypes are the same on all ranks.
      root_rank: the root's rank in the world, also with a process set.
      name: the operation's name, the same on all ranks.
      process_set: the ranks that take part.

    Returns:
      A list of the new values; in a graph, of the operations that assign them.
    """
    values = [variable.read_value() for variable in variables]
    received = _broadcast_group(values, root_rank, name, False, process_set, grouped=True)
    return [variable.assign(value) for variable, value in zip(variables, received)]


@not_converted
def alltoall(
    tensor: Any,
    splits: Any = None,
    name: Name = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Sends rows of `tensor` to all ranks of the process set and returns the rows received.

    Args:
      tensor: a tensor with at least one dimension. Only the first dimension may differ between ranks.
      splits: how many rows go to each rank, in rank order (int32); None: the same number to each.
      name, ignore_name_scope, process_set: as for :func:`allgather`.

    Returns:
      The rows received, in rank order. If `splits` is given, a pair of these and how many rows came from each rank (int32).

    Example:
      >>> import tensorflow as tf
      >>> rows, received_splits = hvd.alltoall(tf.constant([5, 6, 7]), splits=[2])
      >>> rows.numpy().tolist(), received_splits.numpy().tolist()
      ([5, 6], [2])
    """
    _xla.refuse("alltoall")
    process_set_id = process_sets.check(process_set)
    tensor = tensor_of(tensor)
    parts = _parts(tensor, of_rows=True)
    full = _name("alltoall", [tensor], name, ignore_name_scope, process_set_id)
    counts = tf.convert_to_tensor([] if splits is None else splits, dtype=tf.int32)
    fields = dict(tensor_name=full, process_set=process_set_id, waits=_waits())
    received_parts, received = functions.horovod_alltoall(parts, counts, **fields)
    rows = _joined(received_parts, tensor)
    return rows if splits is None else (rows, received)


@not_converted
def _reducescatter(
    tensor: Any,
    name: Name = None,
    op: int = Sum,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Any:
    """Reduces the ranks' tensors, of the same shape and dtype, and returns this rank's rows of the result. Of n ranks the first
    ``rows % n`` get one row more.
    """
    scales = prescale_factor, postscale_factor
    return _scatter([tensor], name, op, *scales, ignore_name_scope, process_set, grouped=False)[0]


@not_converted
def _grouped_reducescatter(
    tensors: Sequence[Any],
    name: Name = None,
    op: int = Sum,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[Any]:
    """Does what :func:`_reducescatter` does for several tensors, as one operation."""
    scales = prescale_factor, postscale_factor
    return _scatter(tensors, name, op, *scales, ignore_name_scope, process_set, grouped=True)


def _scatter(
    tensors: Sequence[Any],
    name: Name,
    op: int,
    prescale_factor: float,
    postscale_factor: float,
    ignore_name_scope: bool,
    process_set: ProcessSet,
    grouped: bool,
) -> list[Any]:
    _xla.refuse("reducescatter")
    check_reduction(op)
    process_set_id = process_sets.check(process_set)
    inputs = _tensors(tensors)
    for tensor in inputs:
        check_reduction_of(tensor.dtype.name, op)
    parts = [_parts(tensor, of_rows=True) for tensor in inputs]
    kind = "grouped_reducescatter" if grouped else "reducescatter"
    reduced = functions.horovod_reducescatter(
        parts,
        tensor_name=_name(kind, inputs, name, ignore_name_scope, process_set_id),
        process_set=process_set_id,
        waits=_waits(),
        reduction=op,
        prescale_factor=prescale_factor,
        postscale_factor=postscale_factor,
    )
    return [*map(_joined, reduced, inputs)]


@not_converted
def join() -> Any:
    """Takes part in the other ranks' allreduces with the neutral element until all ranks have called it.

    Returns:
      The last rank that called it, an int32 tensor, the same on all ranks.

    Example:
      >>> int(hvd.join())
      0
    """
    _xla.refuse("join")
    if tf.executing_eagerly():
        return tf.constant(ops.join(), tf.int32)
    return functions.horovod_join(tensor_name="horovod.join")
