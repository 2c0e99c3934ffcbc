"""The reduction of gradients over the ranks, which tapes and optimizers share."""

import warnings
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, Union

from horovod.common import process_sets
from horovod.common.compression import AnyCompressor
from horovod.common.ops import Average
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.common.util import is_elastic, split_list
from horovod.tensorflow import _xla
from horovod.tensorflow._library import tf
from horovod.tensorflow._queries import process_set_included_op, size_op
from horovod.tensorflow.compression import Compression
from horovod.tensorflow.reductions import allreduce, grouped_allreduce
from horovod.tensorflow.util import on_device, size_of, unique_name

Groups = Union[int, Sequence[Sequence[Any]], None]
Reduce = Callable[[list[Any], list[Any]], list[Any]]

_BAD_GROUPS = "groups must be a positive integer or a list of lists of tf.Variable"


class Reduction(NamedTuple):
    """The settings of a reduction; `groups` and `predivide` have been checked."""

    op: int = Average
    device_dense: str = ""
    device_sparse: str = ""
    compression: AnyCompressor = Compression.none
    sparse_as_dense: bool = False
    predivide: float = 1.0
    groups: Groups = None
    process_set: ProcessSet = global_process_set


def check_groups(num_groups: int, groups: Groups) -> Groups:
    """Returns the groups that the arguments `num_groups`, which is deprecated, and `groups` describe. Raises ValueError."""
    if num_groups != 0:
        warnings.warn(
            "`num_groups` is deprecated: use `groups`",
            DeprecationWarning,
            stacklevel=3,
        )
        groups = num_groups if groups is None else groups
    if groups is None or (isinstance(groups, int) and groups > 0):
        return groups
    if not isinstance(groups, list) or not all(isinstance(group, (list, tuple)) for group in groups):
        raise ValueError(_BAD_GROUPS)
    return groups


class GradientReducer:
    """Reduces gradients over the ranks of a process set. On a rank outside of the set, or alone in it, they do not change. In an
    elastic job a traced function uses the ranks that exist when it runs.

    Without groups, each gradient in a graph is reduced as soon as it is computed, and the runtime fuses those that are ready at
    the same time. In eager execution all gradients are one group, because separate calls would wait one after another. In
    programs that XLA compiles they are always one operation: several operations would each wait, in an order that may differ
    between ranks.
    """

    def __init__(self, name: str, reduction: Reduction) -> None:
        process_sets.known(reduction.process_set)
        self._scope = name + "_Allreduce"
        self._reduction = reduction

    def reduce(self, grads: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        """Returns the reduced gradients. None stays None, and must be None on all ranks.

        Args:
          grads: tensors, tf.IndexedSlices or None.
          variables: the variable of each gradient.
        """
        results = [self._densified(grad) for grad in grads]
        with tf.name_scope(self._scope):
            for places in self._places(results, variables):
                group = self._reduced([results[place] for place in places], self._name(places[0]))
                for place, grad in zip(places, group):
                    results[place] = grad
        return results

    def _name(self, place: int) -> str:
        """Returns the name of the operation for a group whose first gradient is at that position. It does not depend on the gradient,
        because ranks may have different names for a model and its layers, e.g. if one of them has loaded the model.
        """
        name = f"{self._scope}/grad_{place}"
        # A graph may have several tapes. Eagerly each step has the same names: TensorFlow keeps something for each.
        return name if tf.executing_eagerly() else unique_name(name)

    def _densified(self, grad: Any) -> Any:
        if self._reduction.sparse_as_dense and isinstance(grad, tf.IndexedSlices):
            return tf.convert_to_tensor(grad)
        return grad

    def _places(self, grads: list[Any], variables: Sequence[Any]) -> list[list[int]]:
        """Returns the positions of the gradients that are reduced together."""
        present = [place for place, grad in enumerate(grads) if grad is not None]
        groups = self._reduction.groups
        if _xla.is_compiling():
            parts = [present]
        elif groups is None:
            parts = [present] if tf.executing_eagerly() else [[place] for place in present]
        elif isinstance(groups, int):
            parts = split_list(present, groups)
        else:
            place_of = {id(variables[place]): place for place in present}
            parts = [[place_of.pop(id(each)) for each in group if id(each) in place_of] for group in groups]
            parts += [[place] for place in place_of.values()]
        return [part for part in parts if part]

    def _reduced(self, grads: list[Any], name: str) -> list[Any]:
        process_set = self._reduction.process_set
        if not is_elastic():
            return self._allreduced(grads, name) if process_sets.takes_part(process_set) else grads
        if process_set is global_process_set:
            return self._allreduced(grads, name)
        process_set_id = process_sets.check(process_set)
        with on_device("cpu"):
            is_member = tf.equal(process_set_included_op(process_set_id), 1)
            has_others = tf.greater(size_op(process_set_id), 1)
        return list(
            tf.cond(
                tf.logical_and(is_member, has_others),
                lambda: tuple(self._allreduced(grads, name)),
                lambda: tuple(grads),
            )
        )

    def _allreduced(self, grads: list[Any], name: str) -> list[Any]:
        how = self._reduction
        settings: dict[str, Any] = dict(
            device_dense=how.device_dense,
            device_sparse=how.device_sparse,
            compression=how.compression,
            op=how.op,
            process_set=how.process_set,
            ignore_name_scope=True,
            name=name,
        )
        if how.predivide != 1.0:
            settings.update(prescale_factor=1.0 / how.predivide, postscale_factor=how.predivide)
        if len(grads) == 1:
            return [allreduce(grads[0], **settings)]
        return list(grouped_allreduce(grads, **settings))


class LocalVariables:
    """Variables that each rank has for itself. Their gradients are not reduced but divided by the number of ranks, as if they were
    averaged with zeros of the other ranks.

    Args:
      process_set: the set whose number of ranks is used.
      scales: whether gradients are divided.
    """

    def __init__(self, process_set: ProcessSet, scales: bool) -> None:
        self._process_set = process_set
        self._scales = scales
        self._variables: dict[int, Any] = {}  # by id; kept, so that no other gets the id

    def add(self, variable: Any) -> None:
        """Makes a variable local."""
        self._variables[id(variable)] = variable

    def __contains__(self, variable: Any) -> bool:
        return id(variable) in self._variables

    def reduce_others(self, grads: Sequence[Any], variables: Sequence[Any], reduce: Reduce) -> list[Any]:
        """Returns the gradients: those of local variables scaled, all others reduced by `reduce`, which gets them and their variables."""
        results = list(grads)
        others = [place for place, variable in enumerate(variables) if variable not in self]
        reduced = reduce([results[place] for place in others], [variables[place] for place in others])
        for place, grad in zip(others, reduced):
            results[place] = grad
        if not self._scales:
            return results
        return [self._scaled(grad) if variable in self else grad for grad, variable in zip(results, variables)]

    def _scaled(self, grad: Any) -> Any:
        if grad is None:
            return None
        if isinstance(grad, tf.IndexedSlices):
            return tf.IndexedSlices(self._scaled(grad.values), grad.indices, grad.dense_shape)
        return grad / size_of(self._process_set, grad.dtype)
