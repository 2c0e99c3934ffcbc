"""Marks of variables whose gradients are already reduced, so that each gradient is reduced once if a script uses both a
distributed tape and a distributed optimizer.

A tape or a ``compute_gradients`` sets the marks, and the optimizer that applies the gradients clears them: within one
traced function, or from one eager step to the next. The gradients may be changed in between, e.g. clipped. The script may also
have dropped them and computed others, and local gradients may have been scaled by something of the reduced ones. So an average that
is not the reduced gradient itself is averaged again, which changes nothing if it comes from that.
"""

import functools
import weakref
from collections.abc import Iterable
from typing import Any, NamedTuple, Optional

from horovod.common.process_sets import ProcessSet
from horovod.tensorflow import _derivation
from horovod.tensorflow._library import tf
from horovod.tensorflow.util import variable_of

Pairs = Iterable[tuple[Any, Any]]  # of gradients and variables


class _Mark(NamedTuple):
    variable: Any  # a weak reference: marks that are never cleared, e.g. without a distributed optimizer, keep no variable alive
    gradient: _derivation.Origin
    averaged_over: Optional[ProcessSet]  # None: another reduction, which must not be repeated


_Marks = dict[int, _Mark]  # by the id of the variable

_eager: _Marks = {}
_in_graphs: "weakref.WeakKeyDictionary[Any, _Marks]" = weakref.WeakKeyDictionary()


def _noted() -> _Marks:
    """Returns the marks of the function that is being traced, or of eager execution."""
    if tf.executing_eagerly():
        return _eager
    graph = tf.compat.v1.get_default_graph()
    outer = getattr(graph, "outer_graph", None)
    # Branches of a condition, and functions called by a function, are graphs within its graph.
    while outer is not None and getattr(outer, "building_function", False):
        graph, outer = outer, getattr(outer, "outer_graph", None)
    return _in_graphs.setdefault(graph, {})


def _forget(marks: _Marks, key: int, _: Any) -> None:
    marks.pop(key, None)


def note(pairs: Pairs, averaged_over: Optional[ProcessSet], local: Any = ()) -> None:
    """Marks variables whose gradients have just been reduced; tensors are not marked.

    Args:
      pairs: gradients, of which some may be None, and their variables.
      averaged_over: the process set over which they were averaged; None if something else was done with them.
      local: variables whose gradients were not reduced but scaled; anything with ``in``.
    """
    noted = _noted()
    for gradient, source in pairs:
        variable = variable_of(source)
        if gradient is None or not isinstance(variable, tf.Variable):
            continue
        key = id(variable)
        reference = weakref.ref(variable, functools.partial(_forget, noted, key))
        origin = _derivation.Origin.of(gradient)
        noted[key] = _Mark(reference, origin, None if source in local else averaged_over)


def take(pairs: Pairs, averaged_over: Optional[ProcessSet]) -> list[bool]:
    """Returns, for each variable, whether the gradient with it is reduced, and clears the marks of all.

    Args:
      pairs: gradients, of which some may be None, and their variables.
      averaged_over: the process set over which the caller averages the other gradients; None if it does something else with them.
    """
    noted = _noted()
    marks = [(gradient, noted.pop(id(variable_of(variable)), None)) for gradient, variable in pairs]
    return [mark is not None and _is_reduced(gradient, mark, averaged_over) for gradient, mark in marks]


def _is_reduced(gradient: Any, mark: _Mark, averaged_over: Optional[ProcessSet]) -> bool:
    may_repeat = averaged_over is not None and mark.averaged_over is averaged_over
    return not may_repeat or gradient is None or mark.gradient.is_unchanged(gradient)
