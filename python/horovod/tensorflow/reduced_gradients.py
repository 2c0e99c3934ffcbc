"""Marks of variables whose gradients are already reduced, so that each gradient is reduced once if a script uses both a
distributed tape and a distributed optimizer.

A tape or a ``compute_gradients`` sets the marks, and the optimizer that applies the gradients clears them: within one
traced function, or from one eager step to the next. The gradients may be changed in between, e.g. clipped.
"""

import weakref
from collections.abc import Iterable
from typing import Any

from horovod.tensorflow._library import tf
from horovod.tensorflow.util import variable_of

# By id. Weak references: marks that are never cleared, e.g. without a distributed optimizer, keep no variable alive.
_Variables = weakref.WeakValueDictionary[int, Any]

_eager: _Variables = weakref.WeakValueDictionary()
_in_graphs: "weakref.WeakKeyDictionary[Any, _Variables]" = weakref.WeakKeyDictionary()


def _noted() -> _Variables:
    """Returns the marks of the function that is being traced, or of eager execution."""
    if tf.executing_eagerly():
        return _eager
    graph = tf.compat.v1.get_default_graph()
    outer = getattr(graph, "outer_graph", None)
    # Branches of a condition, and functions called by a function, are graphs within its graph.
    while outer is not None and getattr(outer, "building_function", False):
        graph, outer = outer, getattr(outer, "outer_graph", None)
    return _in_graphs.setdefault(graph, weakref.WeakValueDictionary())


def note(variables: Iterable[Any]) -> None:
    """Marks variables whose gradients have just been reduced; tensors are not marked."""
    noted = _noted()
    for variable in map(variable_of, variables):
        if isinstance(variable, tf.Variable):
            noted[id(variable)] = variable


def take(variables: Iterable[Any]) -> list[bool]:
    """Returns, for each variable, whether its gradient has been marked as reduced, and clears that mark."""
    noted = _noted()
    return [noted.pop(id(variable), None) is not None for variable in map(variable_of, variables)]
