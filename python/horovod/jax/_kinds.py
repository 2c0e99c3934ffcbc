"""The kinds of collectives, as the primitives of JAX need to know them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

from horovod import _ffi
from horovod.common import ops
from horovod.common.collective import Call, Collective
from horovod.common.collective_kinds import Collectives, check_reduction, check_root
from horovod.common.exceptions import HorovodRequestError
from horovod.common.process_sets import ProcessSet
from horovod.jax import _host

Shape = tuple[int, ...]

_collectives = Collectives(_host)


class Settings(NamedTuple):
    """The arguments of an operation beside its arrays, as of the users' functions."""

    name: Optional[str]
    process_set: ProcessSet
    is_group: bool = False
    reduction: int = ops.Average
    prescale: float = 1.0
    postscale: float = 1.0
    root_rank: int = 0
    splits: Optional[tuple[int, ...]] = None

    def of_gradient(self) -> "Settings":
        """Of the operation that makes the gradient."""
        return self._replace(name=self.name and self.name + ".grad")


class Kind:
    """A kind of collective."""

    name = ""
    op = -1  # of _ffi
    moves_rows = False  # and has to have them; else it works on each element alike

    def __init__(self, collective: Collective) -> None:
        self._collective = collective

    def check(self, arrays: Sequence[Any], settings: Settings) -> None:
        """Raises ValueError for bad arguments, beside what `collective` checks."""

    def call(self, settings: Settings) -> Call:
        raise NotImplementedError

    def result_shape(self, shape: Shape, settings: Settings, rank: int, size: int) -> Shape:
        """The shape of the result in a set of `size` ranks that all have arrays of this shape."""
        return shape

    def run(self, arrays: Sequence[Any], settings: Settings) -> list[Any]:
        """The results, of numpy's arrays."""
        if settings.is_group:
            return list(self._collective.run_group(arrays, self.call(settings)))
        return [self._collective.run(arrays[0], self.call(settings))]


class Allreduce(Kind):
    name, op = "allreduce", _ffi.ALLREDUCE

    def check(self, arrays: Sequence[Any], settings: Settings) -> None:
        check_reduction(settings.reduction)

    def call(self, settings: Settings) -> Call:
        s = settings
        return Call(s.name, s.process_set, False, dict(reduction=s.reduction, prescale=s.prescale, postscale=s.postscale))


class Broadcast(Kind):
    name, op = "broadcast", _ffi.BROADCAST

    def check(self, arrays: Sequence[Any], settings: Settings) -> None:
        check_root(settings.root_rank, settings.process_set)

    def call(self, settings: Settings) -> Call:
        return Call(settings.name, settings.process_set, False, dict(root_rank=settings.root_rank))


class _OfRows(Kind):
    moves_rows = True

    def check(self, arrays: Sequence[Any], settings: Settings) -> None:
        if any(len(array.shape) == 0 for array in arrays):
            raise ValueError(f"{self.name} needs arrays of at least one dimension")


class Allgather(_OfRows):
    name, op = "allgather", _ffi.ALLGATHER

    def call(self, settings: Settings) -> Call:
        return Call(settings.name, settings.process_set)

    def result_shape(self, shape: Shape, settings: Settings, rank: int, size: int) -> Shape:
        return (shape[0] * size, *shape[1:])


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

    def run(self, arrays: Sequence[Any], settings: Settings) -> list[Any]:
        """The rows and, with splits, how many came from each rank."""
        rows, received = self._collective.run(arrays[0], self.call(settings))
        return [rows] if settings.splits is None else [rows, received]


class Reducescatter(_OfRows):
    name, op = "reducescatter", _ffi.REDUCESCATTER

    def check(self, arrays: Sequence[Any], settings: Settings) -> None:
        super().check(arrays, settings)
        check_reduction(settings.reduction)
        if settings.reduction == ops.Adasum:
            raise HorovodRequestError("Reducescatter does not support Adasum.")

    call = Allreduce.call

    def result_shape(self, shape: Shape, settings: Settings, rank: int, size: int) -> Shape:
        rows = shape[0]
        return (rows // size + (rank < rows % size), *shape[1:])


allreduce = Allreduce(_collectives.allreduce)
broadcast = Broadcast(_collectives.broadcast)
allgather = Allgather(_collectives.allgather)
alltoall = Alltoall(_collectives.alltoall)
reducescatter = Reducescatter(_collectives.reducescatter)
