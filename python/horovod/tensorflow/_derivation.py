"""What tensors are computed from, as far as it can be seen."""

import weakref
from collections.abc import Iterable
from typing import Any, NamedTuple

from horovod.tensorflow._library import tf


def _tensor_of(value: Any) -> Any:
    return value.values if isinstance(value, tf.IndexedSlices) else value


def _graph_of(tensor: Any) -> Any:
    """Returns the graph of a tensor; None for a value of eager execution."""
    return None if isinstance(tensor, tf.__internal__.EagerTensor) else getattr(tensor, "graph", None)


class Origin(NamedTuple):
    """A tensor from which others may be computed. It keeps no tensor and no graph alive."""

    holder: Any  # a weak reference to the graph; to the tensor if it is in none
    operation: str  # its name in the graph; "" without a graph

    @classmethod
    def of(cls, value: Any) -> "Origin":
        """Returns the origin that is `value`, a tensor or tf.IndexedSlices."""
        tensor = _tensor_of(value)
        graph = _graph_of(tensor)
        return cls(weakref.ref(tensor), "") if graph is None else cls(weakref.ref(graph), tensor.op.name)


class Origins:
    """Several origins, of one function or of eager execution."""

    def __init__(self, origins: Iterable[Origin]) -> None:
        self._places = {(id(origin.holder()), origin.operation) for origin in origins}
        self._others: set[tuple[int, str]] = set()  # operations that come from none of them

    def include(self, value: Any, own: Origin) -> bool:
        """Returns whether `value` is computed from one of the origins: without a graph whether it is `own`. True if its graph does not
        see that of `own`.
        """
        tensor = _tensor_of(value)
        holder = own.holder()
        if not own.operation:
            return tensor is holder
        graph = _graph_of(tensor)
        return graph is not None and (not _sees(graph, holder) or self._is_before(tensor))

    def _is_before(self, tensor: Any) -> bool:
        waiting, seen = [tensor], set()
        while waiting:
            each = waiting.pop()
            place = id(each.graph), each.op.name
            if place in self._places:
                return True
            if place not in seen and place not in self._others:
                seen.add(place)
                waiting.extend(each.op.inputs or _captured(each))
        self._others |= seen
        return False


def _sees(graph: Any, outer: Any) -> bool:
    """Returns whether `outer` is the graph, or one around it."""
    while graph is not None and graph is not outer:
        graph = getattr(graph, "outer_graph", None)
    return graph is not None


def _captured(tensor: Any) -> list[Any]:
    """Returns the tensor of the graph around that `tensor`, an input of a function, stands for."""
    captures = getattr(tensor.graph, "captures", ())
    return [outer for outer, inner in captures if inner is tensor and _graph_of(outer) is not None]
