"""Whether a tensor is another one that was seen before."""

import weakref
from typing import Any, NamedTuple

from horovod.tensorflow._library import tf


def _tensor_of(value: Any) -> Any:
    return value.values if isinstance(value, tf.IndexedSlices) else value


def _graph_of(tensor: Any) -> Any:
    """Returns the graph of a tensor; None for a value of eager execution."""
    return None if isinstance(tensor, tf.__internal__.EagerTensor) else getattr(tensor, "graph", None)


class Origin(NamedTuple):
    """A tensor that may come back, perhaps within a function in whose graph another tensor stands for it. It keeps no tensor and no
    graph alive.
    """

    holder: Any  # a weak reference to the graph; to the tensor if it is in none
    operation: str  # its name in the graph; "" without a graph

    @classmethod
    def of(cls, value: Any) -> "Origin":
        """Returns the origin that is `value`, a tensor or tf.IndexedSlices."""
        tensor = _tensor_of(value)
        graph = _graph_of(tensor)
        return cls(weakref.ref(tensor), "") if graph is None else cls(weakref.ref(graph), tensor.op.name)

    def is_unchanged(self, value: Any) -> bool:
        """Returns whether `value` is this tensor, or a copy of it by Identity or IdentityN."""
        tensor, holder = _tensor_of(value), self.holder()
        if not self.operation:
            return tensor is holder
        while _graph_of(tensor) is not None:
            if tensor.graph is holder and tensor.op.name == self.operation:
                return True
            tensor = _copied(tensor)
        return False


def _copied(tensor: Any) -> Any:
    """Returns the tensor whose value `tensor` has: of the graph around that of a function whose input it is, or what was copied; or None."""
    for outer, inner in getattr(tensor.graph, "captures", ()):
        if inner is tensor:
            return outer
    return tensor.op.inputs[tensor.value_index] if tensor.op.type in ("Identity", "IdentityN") else None
