"""The kinds of collectives, with the rules that JAX's primitive needs."""

from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, Optional

import numpy

from horovod import _ffi
from horovod.common import collective_kinds, ops
from horovod.common.collective import Call, Collective, Requests
from horovod.common.collective_kinds import Collectives, check_reduction, check_root
from horovod.common.exceptions import HorovodRequestError
from horovod.common.process_sets import ProcessSet
from horovod.common.tensors import check_reduction_of
from horovod.jax import _device_arrays, _device_path, _host, _place
from horovod.jax._library import jax

Array = Any  # of JAX or, in host memory, of numpy
Shape = tuple[int, ...]
Bind = Callable[["Kind", Sequence[Array], "Settings"], list[Array]]  # runs a collective, or traces it

_collectives = Collectives(_host)


class _BroadcastOnDevice(collective_kinds.Broadcast[Array]):
    """Sends the root's array from where it is: the output of the root could not be given its values first."""

    def requests(self, tensors: list[Array], call: Call) -> Requests[Array]:
        outputs = [self.adapter.empty_like(tensor)[0] for tensor in tensors]
        return Requests(tensors, outputs, [call.fields] * len(tensors))


_on_devices = Collectives(_device_arrays)
_on_devices.broadcast = _BroadcastOnDevice(_on_devices.allreduce)


class Settings(NamedTuple):
    """The arguments of an operation other than its arrays, as in the public functions."""

    name: Optional[str]
    process_set: ProcessSet
    is_group: bool = False
    reduction: int = ops.Average
    prescale: float = 1.0
    postscale: float = 1.0
    root_rank: int = 0
    splits: Optional[tuple[int, ...]] = None
    received: Optional[tuple[int, ...]] = None  # of an alltoall's tangent: the rows from each rank

    def of_gradient(self, **fields: Any) -> "Settings":
        """Returns the settings of the operation that computes the gradient, with other `fields`."""
        return self._replace(name=self.name and self.name + ".grad", **fields)

    def of_average(self) -> "Settings":
        """Returns the settings for a gradient that is the ranks' average."""
        return self.of_gradient(reduction=ops.Average, prescale=1.0, postscale=1.0)


class Kind:
    """A kind of collective."""

    name = ""
    op = -1  # of _ffi
    moves_rows = False  # and has to have them; else it works on each element alike
    only_moves = True  # the elements are only moved

    def __init__(self) -> None:
        # For arrays of numpy, and for JAX's own on a CUDA device.
        self._collective: Collective[Array, Any] = getattr(_collectives, self.name)
        self._on_device: Collective[Array, Any] = getattr(_on_devices, self.name)

    def check(self, arrays: Sequence[Array], settings: Settings) -> None:
        """Raises ValueError for invalid arguments, in addition to the checks of `collective`."""

    def call(self, settings: Settings) -> Call:
        raise NotImplementedError

    def result_shape(self, shape: Shape, settings: Settings, rank: int, size: int) -> Shape:
        """Returns the shape of the result in a set of `size` ranks that all have arrays of this shape."""
        return shape

    def is_for_devices(self, arrays: Sequence[Array], settings: Settings) -> bool:
        """Returns whether it can be run on JAX's arrays, which are on a CUDA device, without the host."""
        return _device_path.takes(arrays, self.call(settings).fields)

    def run(self, arrays: Sequence[Array], settings: Settings, on_device: bool = False) -> list[Array]:
        """Returns the results, given and as numpy arrays; with `on_device`, as JAX's on the device."""
        collective = self._on_device if on_device else self._collective
        if settings.is_group:
            return list(collective.run_group(arrays, self.call(settings)))
        return [collective.run(arrays[0], self.call(settings))]

    def backward(self, bind: Bind, grads: Sequence[Array], rows: Sequence[int], settings: Settings) -> list[Array]:
        """Returns the gradients of arrays with these numbers of rows, given those of the results, as Horovod for TensorFlow and PyTorch
        defines them.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.name


class Allreduce(Kind):
    name, op, only_moves = "allreduce", _ffi.ALLREDUCE, False

    def check(self, arrays: Sequence[Array], settings: Settings) -> None:
        check_reduction(settings.reduction)
        for array in arrays:
            check_reduction_of(str(array.dtype), settings.reduction)

    def call(self, settings: Settings) -> Call:
        s = settings
        return Call(
            s.name, s.process_set, False, dict(reduction=s.reduction, prescale=s.prescale, postscale=s.postscale)
        )

    def backward(self, bind: Bind, grads: Sequence[Array], rows: Sequence[int], settings: Settings) -> list[Array]:
        return bind(self, grads, settings.of_gradient())


class Broadcast(Kind):
    name, op = "broadcast", _ffi.BROADCAST

    def check(self, arrays: Sequence[Array], settings: Settings) -> None:
        check_root(settings.root_rank, settings.process_set)

    def call(self, settings: Settings) -> Call:
        return Call(settings.name, settings.process_set, False, dict(root_rank=settings.root_rank))

    def backward(self, bind: Bind, grads: Sequence[Array], rows: Sequence[int], settings: Settings) -> list[Array]:
        averaged = bind(allreduce, grads, settings.of_average())
        # All ranks use the average, so that none may leave it out.
        is_root = _place.world_rank() == settings.root_rank
        return [jax.numpy.where(is_root, grad, jax.numpy.zeros_like(grad)) for grad in averaged]


class _OfRows(Kind):
    moves_rows = True

    def check(self, arrays: Sequence[Array], settings: Settings) -> None:
        if any(len(array.shape) == 0 for array in arrays):
            raise ValueError(f"{self.name} needs arrays of at least one dimension")


class Allgather(_OfRows):
    name, op = "allgather", _ffi.ALLGATHER

    def call(self, settings: Settings) -> Call:
        return Call(settings.name, settings.process_set)

    def result_shape(self, shape: Shape, settings: Settings, rank: int, size: int) -> Shape:
        return (shape[0] * size, *shape[1:])

    def backward(self, bind: Bind, grads: Sequence[Array], rows: Sequence[int], settings: Settings) -> list[Array]:
        averaged = bind(allreduce, grads, settings.of_average())
        return [self._own(grad, count, settings) for grad, count in zip(averaged, rows)]

    def _own(self, grad: Array, count: int, settings: Settings) -> Array:
        """Returns this rank's rows."""
        rank, size = _place.traced(settings.process_set)
        if isinstance(grad, jax.core.Tracer):
            counts = [count] * size
        else:
            counts = _collectives.allgather.run(numpy.array([count]), Call(None, settings.process_set)).tolist()
        start = sum(counts[:rank])
        return grad[start : start + count]


class Alltoall(_OfRows):
    name, op = "alltoall", _ffi.ALLTOALL

    def call(self, settings: Settings) -> Call:
        return Call(settings.name, settings.process_set, False, dict(splits=[settings.splits]))

    def result_shape(self, shape: Shape, settings: Settings, rank: int, size: int) -> Shape:
        if settings.splits is not None:
            raise HorovodRequestError("alltoall with splits can't be jitted: how many rows arrive is not known then.")
        if shape[0] % size != 0:
            raise ValueError(f"alltoall without splits needs rows that {size} ranks divide, got {shape[0]}")
        return shape

    def run(self, arrays: Sequence[Array], settings: Settings, on_device: bool = False) -> list[Array]:
        """Returns the rows and, with splits, how many came from each rank."""
        ((rows, received),) = super().run(arrays, settings, on_device)
        return [rows] if settings.splits is None else [rows, received]

    def backward(self, bind: Bind, grads: Sequence[Array], rows: Sequence[int], settings: Settings) -> list[Array]:
        sent, *_ = bind(self, grads, settings.of_gradient(splits=settings.received))
        missing = rows[0] - sent.shape[0]  # rows beyond the splits were not sent
        return [jax.numpy.pad(sent, [(0, missing)] + [(0, 0)] * (sent.ndim - 1))]


class Reducescatter(_OfRows):
    name, op, only_moves = "reducescatter", _ffi.REDUCESCATTER, False

    def check(self, arrays: Sequence[Array], settings: Settings) -> None:
        super().check(arrays, settings)
        if settings.reduction == ops.Adasum:
            raise HorovodRequestError("Reducescatter does not support Adasum.")
        allreduce.check(arrays, settings)

    call = Allreduce.call

    def result_shape(self, shape: Shape, settings: Settings, rank: int, size: int) -> Shape:
        rows = shape[0]
        return (rows // size + (rank < rows % size), *shape[1:])

    def backward(self, bind: Bind, grads: Sequence[Array], rows: Sequence[int], settings: Settings) -> list[Array]:
        rank, size = _place.traced(settings.process_set)
        factor = settings.prescale * settings.postscale * (size if settings.reduction == ops.Sum else 1)
        if all(count % size == 0 for count in rows):
            gathered = bind(allgather, grads, settings.of_gradient())
            return [grad * factor for grad in gathered] if factor != 1 else gathered
        # Within jit, only equally many rows of all ranks can be gathered.
        whole = [self._in_place(grad, count, rank, size) for grad, count in zip(grads, rows)]
        return bind(allreduce, whole, settings.of_gradient(reduction=ops.Sum, prescale=1.0, postscale=factor))

    @staticmethod
    def _in_place(grad: Array, rows: int, rank: int, size: int) -> Array:
        """Returns `grad` at its position among all `rows`, with zeros elsewhere."""
        before = rank * (rows // size) + min(rank, rows % size)
        after = rows - before - grad.shape[0]
        return jax.numpy.pad(grad, [(before, after)] + [(0, 0)] * (grad.ndim - 1))


allreduce = Allreduce()
broadcast = Broadcast()
allgather = Allgather()
alltoall = Alltoall()
reducescatter = Reducescatter()
