"""The reduction of the gradients of a distributed optimizer, by the Horovod package of Keras's backend."""

import zlib
from collections.abc import Sequence
from typing import Any, Callable, Protocol

from horovod._keras.settings import Settings
from horovod.common import process_sets
from horovod.common.compression import NoneCompressor
from horovod.common.ops import Max, Min
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.common.util import is_elastic

# Of a list of tensors: name, op, prescale factor, postscale factor, process set.
Allreduce = Callable[[Sequence[Any], str, int, float, float, ProcessSet], list[Any]]


class Reducer(Protocol):
    """The reducer of one optimizer. Gradients are tensors of the backend, or None for a variable without one, which must be so on
    all ranks.
    """

    def reduce(self, grads: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        """Returns the reduced gradients of all ranks; those of local variables stay this rank's."""

    def largest(self, values: Sequence[Any]) -> list[Any]:
        """Returns the largest of the ranks' values, element by element."""

    def agreed(self, flag: Any) -> Any:
        """Returns whether `flag`, a boolean scalar, is true on all ranks."""

    def add_local(self, variable: Any) -> None:
        """Makes a variable local: its gradients are not reduced."""

    def has_local(self) -> bool:
        """Returns whether there are local variables."""


class ArrayReducer:
    """The reducer for Keras 3 on JAX and torch. All gradients are one operation, because JAX may run the operations of a program in
    any order, one after another.
    """

    def __init__(self, name: str, settings: Settings, allreduce: Allreduce) -> None:
        self._name = name + "_Allreduce"
        self._settings = settings
        self._compression = settings.compression or NoneCompressor
        self._allreduce = allreduce
        self._local: dict[int, Any] = {}  # by id; kept, so that no other gets the id

    def add_local(self, variable: Any) -> None:
        self._local[id(variable)] = variable

    def has_local(self) -> bool:
        return bool(self._local)

    def reduce(self, grads: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        results = list(grads)
        places = [i for i, grad in enumerate(results) if grad is not None and id(variables[i]) not in self._local]
        factor = self._settings.gradient_predivide_factor
        pairs = [self._compression.compress(results[i]) for i in places]
        reduced = self._run([tensor for tensor, _ in pairs], self._settings.op, 1.0 / factor, factor)
        for i, tensor, (_, context) in zip(places, reduced, pairs):
            results[i] = self._compression.decompress(tensor, context)
        if self._settings.scale_local_gradients and self._local:
            results = [self._scaled(grad, variable) for grad, variable in zip(results, variables)]
        return results

    def _scaled(self, grad: Any, variable: Any) -> Any:
        if grad is None or id(variable) not in self._local:
            return grad
        return grad / self._size()

    def _size(self) -> int:
        """Returns the number of ranks by which the gradient of a local variable is divided."""
        size: int = self._settings.process_set.size()  # type: ignore[assignment]  # known for a set in use
        return size

    def largest(self, values: Sequence[Any]) -> list[Any]:
        return self._run(values, Max)

    def agreed(self, flag: Any) -> Any:
        import keras

        (agreed,) = self._run([keras.ops.cast(flag, "int32")], Min)
        return keras.ops.cast(agreed, "bool")

    def _run(self, tensors: Sequence[Any], op: int, prescale: float = 1.0, postscale: float = 1.0) -> list[Any]:
        process_set = self._settings.process_set
        grows = is_elastic() and process_set is global_process_set  # a compiled function outlives the size
        if not tensors or not (grows or process_sets.takes_part(process_set)):
            return list(tensors)
        return self._allreduce(tensors, self._name_of(tensors), op, prescale, postscale, process_set)

    def _name_of(self, tensors: Sequence[Any]) -> str:
        """Returns a name that differs for operations that may run at the same time, and does not depend on how often a rank has made its
        model anew.
        """
        kinds = ",".join(f"{tuple(tensor.shape)}{tensor.dtype}" for tensor in tensors)
        return f"{self._name}.{zlib.crc32(kinds.encode()):08x}"


class JaxReducer(ArrayReducer):
    """The reducer for JAX, which traces programs again in another world if they depend on its size."""

    def __init__(self, name: str, settings: Settings) -> None:
        super().__init__(name, settings, _allreduce_with_jax)

    def _size(self) -> int:
        from horovod.jax import _place

        process_set = self._settings.process_set
        return _place.traced(process_set)[1] if process_set.included() else super()._size()


class TensorFlowReducer:
    """The reducer for TensorFlow: see :class:`horovod.tensorflow.gradients.GradientReducer`."""

    def __init__(self, name: str, settings: Settings) -> None:
        from horovod.tensorflow import gradients

        reduction = gradients.Reduction(
            op=settings.op,
            device_dense=settings.device_dense,
            device_sparse=settings.device_sparse,
            compression=settings.compression or NoneCompressor,
            sparse_as_dense=settings.sparse_as_dense,
            predivide=settings.gradient_predivide_factor,
            groups=settings.groups,
            process_set=settings.process_set,
        )
        self._process_set = settings.process_set
        self._reducer = gradients.GradientReducer(name, reduction)
        self._local = gradients.LocalVariables(settings.process_set, settings.scale_local_gradients)
        self._any_local = False

    def add_local(self, variable: Any) -> None:
        self._local.add(variable)
        self._any_local = True

    def has_local(self) -> bool:
        return self._any_local

    def reduce(self, grads: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        return self._local.reduce_others(grads, variables, self._reducer.reduce)

    def largest(self, values: Sequence[Any]) -> list[Any]:
        return self._run(values, Max)

    def agreed(self, flag: Any) -> Any:
        import tensorflow as tf

        (agreed,) = self._run([tf.cast(flag, tf.int32)], Min)
        return tf.cast(agreed, tf.bool)

    def _run(self, tensors: Sequence[Any], op: int) -> list[Any]:
        from horovod.tensorflow.mpi_ops import _grouped_allreduce

        process_set = self._process_set
        grows = is_elastic() and process_set is global_process_set
        if not tensors or not (grows or process_sets.takes_part(process_set)):
            return list(tensors)
        return _grouped_allreduce(tensors, op=op, process_set=process_set)


def _allreduce_with_jax(
    tensors: Sequence[Any], name: str, op: int, prescale: float, postscale: float, process_set: ProcessSet
) -> list[Any]:
    import horovod.jax as hvd

    scales = dict(prescale_factor=prescale, postscale_factor=postscale)
    return list(hvd.grouped_allreduce(list(tensors), name=name, op=op, process_set=process_set, **scales))


def _allreduce_with_torch(
    tensors: Sequence[Any], name: str, op: int, prescale: float, postscale: float, process_set: ProcessSet
) -> list[Any]:
    import horovod.torch as hvd

    return list(
        hvd.grouped_allreduce(
            [tensor.contiguous() for tensor in tensors],
            name=name,
            op=op,
            prescale_factor=prescale,
            postscale_factor=postscale,
            process_set=process_set,
        )
    )


def _torch_reducer(name: str, settings: Settings) -> Reducer:
    """Returns the reducer for torch. Its functions must not be compiled: compile(jit_compile=True) compiles the step around them."""
    from horovod.torch._tensors import not_compiled

    reducer = ArrayReducer(name, settings, _allreduce_with_torch)
    for function in ("reduce", "largest", "agreed"):
        setattr(reducer, function, not_compiled(getattr(reducer, function)))
    return reducer


def reducer_of(backend: str, name: str, settings: Settings) -> Reducer:
    """Returns a new reducer for a backend of Keras. Raises ValueError for one that Horovod does not support."""
    if backend == "tensorflow":
        return TensorFlowReducer(name, settings)
    if backend == "jax":
        return JaxReducer(name, settings)
    if backend == "torch":
        return _torch_reducer(name, settings)
    raise ValueError(f"Horovod reduces gradients of Keras on tensorflow, jax and torch, not on {backend}.")
