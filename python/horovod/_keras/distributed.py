"""The common part of distributed optimizers of all versions of Keras."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Optional

from horovod._keras.reducers import Reducer, reducer_of
from horovod._keras.settings import Settings
from horovod.common.ops import Average
from horovod.common.process_sets import ProcessSet


class Distribution:
    """The reduction of one optimizer's gradients; an attribute of the optimizer. Not thread-safe, like optimizers.

    Args:
      backend: the backend of Keras.
      name: the name of its operations.
      settings: the settings of the optimizer.

    Attributes:
      all_done: whether the gradients that are being applied are reduced already.
      applied: the variables whose gradients are being applied, with accumulation.
      pending: the ids of those variables whose gradients are not reduced yet.
    """

    def __init__(self, backend: str, name: str, settings: Settings) -> None:
        self.backend = backend
        self.settings = settings
        self.all_done = False
        self.applied: list[Any] = []
        self.pending: set[int] = set()
        self._name = name
        self._reducer: Optional[Reducer] = None
        self._layers: list[Any] = []

    @property
    def reducer(self) -> Reducer:
        """Returns the reducer, which knows the local layers' variables that have been built so far."""
        if self._reducer is None:
            self._reducer = reducer_of(self.backend, self._name, self.settings)
        for layer in self._layers:
            for variable in layer.trainable_weights:
                self._reducer.add_local(variable)
        return self._reducer

    def add_local_variable(self, variable: Any) -> None:
        self.reducer.add_local(variable)

    def add_local_layers(self, layers: Iterable[Any]) -> None:
        """Makes the layers' trainable weights local variables, including those that are not built yet."""
        self._layers.extend(layers)

    def reduce(self, grads: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        """Returns the reduced gradients of all ranks."""
        return self.reducer.reduce(grads, variables)

    def averages_over(self) -> Optional[ProcessSet]:
        """Returns the process set over which gradients are averaged, which changes no average; None if another reduction might."""
        repeats_well = self.settings.op == Average and not self.reducer.has_local()
        return self.settings.process_set if repeats_well else None

    def may_skip_alone(self, accumulates: bool) -> bool:
        """Returns whether a loss scale might see unreduced gradients, which can be finite on some ranks and not on others."""
        return accumulates or self.reducer.has_local()

    @contextlib.contextmanager
    def done(self) -> Iterator[None]:
        """Returns a context in which gradients that are applied are reduced already."""
        before, self.all_done = self.all_done, True
        try:
            yield
        finally:
            self.all_done = before


class DistributedOptimizerMixin:
    """The base class that precedes an optimizer's class. The instances of such a class are distributed, including those from
    `from_config`.
    """

    _hvd_settings: Settings  # these three are of the class
    _hvd_backend: str
    _hvd_name: str
    _hvd: Distribution

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._hvd_distribute()

    def _hvd_distribute(self) -> None:
        self._hvd = Distribution(self._hvd_backend, self._hvd_name, self._hvd_settings)

    def _hvd_open_group(self) -> int:
        """Returns of how many passes the group of accumulated gradients is that has begun; 0: none has."""
        raise NotImplementedError

    def register_local_var(self, var: Any) -> None:
        """Excludes `var`, a variable that each rank has for itself, from the reduction; see `scale_local_gradients`."""
        self._hvd.add_local_variable(var)


def open_group_of(value: Any) -> str:
    """Returns what has made an optimizer accumulate gradients that are not reduced yet, for a message; "": it has none, or `value`
    is no distributed optimizer.

    Args:
      value: anything; a LossScaleOptimizer counts as the optimizer in it.
    """
    inner = getattr(value, "inner_optimizer", value)
    passes = inner._hvd_open_group() if isinstance(inner, DistributedOptimizerMixin) else 0
    return f"backward_passes_per_step={passes}" if passes else ""
