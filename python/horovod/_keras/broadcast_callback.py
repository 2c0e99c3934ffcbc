"""The callback that gives all ranks the same variables at the start."""

from collections.abc import Iterable
from typing import Any

from horovod._keras import tensors
from horovod._keras.learning_rate_callbacks import LearningRate, check_alike
from horovod.common.basics import rank
from horovod.common.ops import max_over_ranks
from horovod.common.util import is_elastic
from horovod.elastic.stream import broadcast_tree
from horovod.elastic.trees import Trees
from horovod.numpy import _arrays

_TREES = Trees(_arrays)

# A mixin: the next base class is Callback of some Keras.
_Behind: Any = object


def broadcast_variables(owner: Any, variables: list[Any], root_rank: int, name: str) -> None:
    """Gives variables of `owner`, a model or an optimizer, the values of rank `root_rank`. Raises ValueError if their number or
    shapes differ between ranks.
    """
    values = broadcast_tree(_TREES, tensors.values_of(owner, variables), root_rank, name)
    if rank() != root_rank:
        tensors.assign(owner, variables, values)


class BroadcastGlobalVariables(_Behind):  # type: ignore[misc]
    """Gives all ranks rank `root_rank`'s variables of the model and the optimizer, so that training starts equally everywhere,
    whether from random weights or from a checkpoint.

    The weights are broadcast before the first batch, if all ranks have them by then. All variables are broadcast after the
    first batch, because an optimizer creates its slots in its first step. Each rank keeps the gradients that it accumulates for
    the next step. In an elastic job this is done in each fit(). At the beginning of each further epoch the ranks' learning rates
    are compared.

    Args:
      root_rank: the rank whose values all ranks get.
      device: not used.
      local_variables: a variable, or several. Each rank keeps its own values of them.

    Raises:
      ValueError: an element of `local_variables` is not a variable. In fit(), on all ranks: their learning rates differ.
    """

    model: Any

    def __init__(self, root_rank: int, device: str = "", local_variables: Any = None) -> None:
        super().__init__()
        self.root_rank = root_rank
        self.device = device
        self.broadcast_done = False
        self._local: dict[int, Any] = {}
        for variable in _as_list(local_variables):
            self.register_local_var(variable)

    def register_local_var(self, var: Any) -> None:
        """Excludes a variable from the broadcast: each rank keeps its own value.

        Args:
          var: the variable.
        """
        self._local[id(var)] = var

    def on_train_begin(self, logs: Any = None) -> None:
        """Broadcasts the weights, if all ranks have them. Keras calls it.

        Args:
          logs: not used.
        """
        if is_elastic():
            self.broadcast_done = False  # newcomers have not done so, and all must take part
        built = bool(getattr(self.model, "built", True))
        if not self.broadcast_done and max_over_ranks(0 if built else 1) == 0:
            self._broadcast_weights()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Compares the ranks' learning rates, which callbacks may have changed at the end of the epoch before. Keras calls it.

        Args:
          epoch: not used.
          logs: not used.
        """
        if not self.broadcast_done:
            return
        optimizer = self.model.optimizer
        rate = LearningRate(optimizer, "").variable()
        if rate is not None and id(rate) not in self._local:
            tensors.take_from_training(self.model)
            check_alike(optimizer)

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Broadcasts all variables after the first batch. Keras calls it.

        Args:
          batch: not used.
          logs: not used.
        """
        if self.broadcast_done:
            return
        tensors.take_from_training(self.model)
        self._broadcast_weights()
        optimizer = self.model.optimizer
        # Accumulated gradients are of each rank's own batches, and are summed over the ranks later.
        own = {id(variable) for variable in tensors.accumulators_of(optimizer)}
        variables = [each for each in tensors.variables_of_optimizer(optimizer) if id(each) not in own]
        self._broadcast(optimizer, variables, "optimizer")
        self.broadcast_done = True

    def _broadcast_weights(self) -> None:
        self._broadcast(self.model, tensors.variables_of_model(self.model), "model")

    def _broadcast(self, owner: Any, variables: Iterable[Any], name: str) -> None:
        shared = [variable for variable in variables if id(variable) not in self._local]
        broadcast_variables(owner, shared, self.root_rank, "horovod.keras." + name)


def _as_list(value: Any) -> list[Any]:
    variables = [] if value is None else [value] if _is_variable(value) else list(value)
    if not all(_is_variable(variable) for variable in variables):
        raise ValueError("local_variables must hold variables only")
    return variables


def _is_variable(value: Any) -> bool:
    return hasattr(value, "assign") and hasattr(value, "shape")
