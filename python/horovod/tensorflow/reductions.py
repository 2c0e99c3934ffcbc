"""Reductions with compression, and of tf.IndexedSlices."""

from collections.abc import Sequence
from typing import Any, Optional

from horovod.common.compression import AnyCompressor
from horovod.common.ops import Adasum, Average, Sum
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.tensorflow._library import not_converted, tf
from horovod.tensorflow.compression import Compression
from horovod.tensorflow.mpi_ops import (
    _allreduce,
    _grouped_allreduce,
    _grouped_reducescatter,
    _reducescatter,
    grouped_allgather,
    handle_average_backwards_compatibility,
)
from horovod.tensorflow.util import check_group, on_device, size_of, tensor_of

__all__ = [
    "allreduce",
    "grouped_allreduce",
    "grouped_reducescatter",
    "handle_average_backwards_compatibility",
    "reducescatter",
]

_SPARSE_ADASUM = (
    "op=Adasum reduces dense tensors only, not tf.IndexedSlices: pass sparse_as_dense=True to the optimizer or tape"
)


def _reduction(op: Optional[int], average: Optional[bool]) -> int:
    return handle_average_backwards_compatibility(op, average)


def _check_sparse(op: int, prescale_factor: float, postscale_factor: float) -> None:
    if op == Adasum:
        raise NotImplementedError(_SPARSE_ADASUM)
    if op not in (Sum, Average):
        raise NotImplementedError("tf.IndexedSlices can be reduced with op=Sum or op=Average only")
    if prescale_factor != 1.0 or postscale_factor != 1.0:
        raise NotImplementedError(
            "tf.IndexedSlices are reduced without prescale_factor and postscale_factor: scale their values"
        )


def _reduced_slices(
    slices: Sequence[Any], op: int, name: Optional[str], ignore_name_scope: bool, process_set: ProcessSet
) -> list[Any]:
    """Returns the concatenated slices of all ranks. They stand for the sum, because an index may occur several times. For the
    average, the values are divided by the number of ranks.
    """
    tensors = [each.values for each in slices] + [each.indices for each in slices]
    name = None if name is None else name + "_slices"
    gathered = grouped_allgather(tensors, name, ignore_name_scope, process_set)
    values, indices = gathered[: len(slices)], gathered[len(slices) :]
    if op == Average:
        values = [value / size_of(process_set, value.dtype) for value in values]
    return [
        tf.IndexedSlices(value, index, dense_shape=each.dense_shape)
        for value, index, each in zip(values, indices, slices)
    ]


@not_converted
def allreduce(
    tensor: Any,
    average: Optional[bool] = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: AnyCompressor = Compression.none,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
) -> Any:
    """Reduces the ranks' tensors.

    Args:
      tensor: a tensor whose shape and dtype are the same on all ranks; or tf.IndexedSlices, which are gathered from all
        ranks, so that their values are summed where the result is used.
      average: deprecated; use `op`. True stands for hvd.Average, False for hvd.Sum.
      device_dense: the device for the operations on dense tensors.
      device_sparse: the device for the operations on tf.IndexedSlices.
      compression: how the tensor is compressed for the reduction, e.g. hvd.Compression.fp16.
      op: hvd.Average (the default), hvd.Sum, hvd.Adasum, hvd.Min, hvd.Max or hvd.Product. An average of integers is rounded
        towards zero. Adasum: Maleki et al., Scaling Distributed Training with Adaptive Summation, 2020.
      prescale_factor: factor by which the input is multiplied before the reduction.
      postscale_factor: factor by which the result is multiplied after it.
      name: the operation's name, the same on all ranks.
      process_set: the ranks that take part; hvd.Average divides by their number.
      ignore_name_scope: whether TensorFlow's name scope is left out of the name.

    Returns:
      The reduced tensor, shaped and typed as `tensor`, or tf.IndexedSlices.

    Raises:
      NotImplementedError: for tf.IndexedSlices, `op` is neither hvd.Sum nor hvd.Average, or a factor is given.
      ValueError: `op` is unknown, or both `op` and `average` are given.
      tf.errors.OpError: see :mod:`horovod.tensorflow.mpi_ops` for the errors of all collectives.

    Example:
      >>> import tensorflow as tf
      >>> hvd.allreduce(tf.constant([1.0, 3.0]), op=hvd.Sum, postscale_factor=2.0).numpy().tolist()
      [2.0, 6.0]
    """
    op = _reduction(op, average)
    if isinstance(tensor, tf.IndexedSlices):
        _check_sparse(op, prescale_factor, postscale_factor)
        with on_device(device_sparse):
            return _reduced_slices([tensor], op, name, ignore_name_scope, process_set)[0]
    with on_device(device_dense):
        compressed, context = compression.compress(tensor_of(tensor))
        scales = prescale_factor, postscale_factor
        reduced = _allreduce(compressed, name, op, *scales, ignore_name_scope, process_set)
        return compression.decompress(reduced, context)


@not_converted
def grouped_allreduce(
    tensors: Sequence[Any],
    average: Optional[bool] = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: AnyCompressor = Compression.none,
    op: Optional[int] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
    name: Optional[str] = None,
) -> Sequence[Any]:
    """Reduces several tensors and tf.IndexedSlices, as one operation: none is reduced before all are ready on all ranks.

    Args:
      tensors: the tensors. They may differ in shape and dtype.
      average, device_dense, device_sparse, compression, op, prescale_factor, postscale_factor, process_set,
        ignore_name_scope, name: as for :func:`allreduce`.

    Returns:
      The list of the results.

    Example:
      >>> import tensorflow as tf
      >>> [int(each) for each in hvd.grouped_allreduce([tf.constant(1), tf.constant(2)], op=hvd.Max)]
      [1, 2]
    """
    check_group(tensors)
    if not tensors:
        return tensors
    op = _reduction(op, average)
    results = list(tensors)
    sparse = [i for i, tensor in enumerate(results) if isinstance(tensor, tf.IndexedSlices)]
    dense = [i for i, tensor in enumerate(results) if not isinstance(tensor, tf.IndexedSlices)]
    if sparse:
        _check_sparse(op, prescale_factor, postscale_factor)
        with on_device(device_sparse):
            slices = [results[i] for i in sparse]
            _put(results, sparse, _reduced_slices(slices, op, name, ignore_name_scope, process_set))
    if dense:
        with on_device(device_dense):
            compressed, contexts = _compressed([results[i] for i in dense], compression)
            scales = prescale_factor, postscale_factor
            reduced = _grouped_allreduce(compressed, name, op, *scales, ignore_name_scope, process_set)
            _put(results, dense, _decompressed(reduced, contexts, compression))
    return results


def _put(results: list[Any], places: Sequence[int], values: Sequence[Any]) -> None:
    for place, value in zip(places, values):
        results[place] = value


def _compressed(tensors: Sequence[Any], compression: AnyCompressor) -> tuple[list[Any], list[Any]]:
    pairs = [compression.compress(tensor_of(tensor)) for tensor in tensors]
    return [tensor for tensor, _ in pairs], [context for _, context in pairs]


def _decompressed(tensors: Sequence[Any], contexts: Sequence[Any], compression: AnyCompressor) -> list[Any]:
    return [compression.decompress(tensor, context) for tensor, context in zip(tensors, contexts)]


@not_converted
def reducescatter(
    tensor: Any,
    device_dense: str = "",
    compression: AnyCompressor = Compression.none,
    op: int = Average,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Any:
    """Reduces the ranks' tensors and returns this rank's rows of the result.

    The rows are distributed evenly; of n ranks the first ``rows % n`` get one row more.

    Args:
      tensor: a tensor with at least one dimension. Shape and dtype are the same on all ranks.
      device_dense, compression, op, name, process_set, ignore_name_scope, prescale_factor, postscale_factor: as for
        :func:`allreduce`; hvd.Adasum is not supported.

    Returns:
      This rank's rows, a tensor.

    Example:
      >>> import tensorflow as tf
      >>> hvd.reducescatter(tf.constant([[1.0, 2.0]]), op=hvd.Sum).numpy().tolist()
      [[1.0, 2.0]]
    """
    with on_device(device_dense):
        compressed, context = compression.compress(tensor_of(tensor))
        reduced = _reducescatter(
            compressed,
            name=name,
            op=op,
            ignore_name_scope=ignore_name_scope,
            process_set=process_set,
            prescale_factor=prescale_factor,
            postscale_factor=postscale_factor,
        )
        return compression.decompress(reduced, context)


@not_converted
def grouped_reducescatter(
    tensors: Sequence[Any],
    device_dense: str = "",
    compression: AnyCompressor = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Sequence[Any]:
    """Reduces several tensors as one operation and returns this rank's rows of each.

    Args:
      tensors: the tensors, each as for :func:`reducescatter`.
      device_dense, compression, op, process_set, prescale_factor, postscale_factor: as for :func:`reducescatter`.

    Returns:
      The list of this rank's rows of each.
    """
    check_group(tensors)
    if not tensors:
        return tensors
    with on_device(device_dense):
        compressed, contexts = _compressed(tensors, compression)
        reduced = _grouped_reducescatter(
            compressed,
            op=op,
            process_set=process_set,
            prescale_factor=prescale_factor,
            postscale_factor=postscale_factor,
        )
        return _decompressed(reduced, contexts, compression)
