"""DistributedOptimizer: an optimizer that reduces gradients over all ranks before each step."""

import operator
import weakref
from collections.abc import Iterable
from typing import Any, Optional, Union

import torch

from horovod.common import _warnings, process_sets
from horovod.common.class_names import class_of
from horovod.common.optimizer_arguments import check_compression, check_predivide, checked_passes
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.common.util import is_iterable
from horovod.torch._adasum_optimizer import AdasumOptimizer
from horovod.torch._gradient_optimizer import GradientOptimizer
from horovod.torch._wrapped_optimizer import WrappedOptimizer
from horovod.torch.compression import Compression, Compressor
from horovod.torch.mpi_ops import Adasum, Average

_BAD_GROUPS = "groups must be a positive integer or a list of lists of torch.Tensor"


def DistributedOptimizer(
    optimizer: torch.optim.Optimizer,
    named_parameters: Optional[Iterable[tuple[str, torch.nn.Parameter]]] = None,
    compression: type[Compressor[torch.Tensor]] = Compression.none,
    backward_passes_per_step: int = 1,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Union[int, list[Iterable[torch.Tensor]], None] = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
) -> WrappedOptimizer:
    """Returns an optimizer that reduces gradients over all ranks of the process set, then steps as `optimizer` does.

    The result is an instance of a subclass of `optimizer`'s class and shares its parameter groups and state; use it in
    place of `optimizer`. The reduction of a gradient starts as soon as backward() has computed it, and backward() returns when
    all are reduced. So gradients can be clipped before step() as in one process, and torch's GradScaler skips the same steps on
    all ranks. Parameters without a gradient on this rank take part with zeros; those without one on any rank do so in step().

    backward() waits for the other ranks' backward(), step() or synchronize(). All ranks call backward() equally often before a
    step; a rank may leave it out. Of optimizers that share a parameter, the one that was made, zeroed or stepped last reduces its
    gradient.

    A deep copy made together with the model, or a pickle loaded together with it, is a distributed optimizer of the new
    parameters.

    Args:
      optimizer: the local optimizer.
      named_parameters: pairs of name and parameter, e.g. ``model.named_parameters()``, which name the reductions. They must
        cover all parameters. Ranks make optimizers whose names are equal in the same order; in an elastic job names differ.
      compression: how gradients (with hvd.Adasum the changes of the parameters) are compressed for the reduction.
      backward_passes_per_step: how many backward() calls accumulate gradients locally before these are reduced. step() may
        be called earlier, for a short last group; clip its gradients after synchronize().
      op: hvd.Average, hvd.Sum or another reduction. With hvd.Adasum the change that a local step makes to the parameters is
        reduced instead of the gradients (Maleki et al., Scaling Distributed Training with Adaptive Summation, 2020).
      gradient_predivide_factor: with hvd.Average, gradients are divided by this factor before the sum, and by
        size / factor after it.
      num_groups: deprecated; use `groups`.
      groups: a number of groups into which the gradients are split, or a list of lists of parameters; those that are not
        the optimizer's do not count. The gradients of a group are reduced together, as soon as all of them are computed.
        Not used with hvd.Adasum.
      sparse_as_dense: whether sparse gradients are reduced as dense ones.
      process_set: the ranks whose gradients are reduced. On any other rank the optimizer stays local.

    Returns:
      The distributed optimizer.

    Raises:
      TypeError: `optimizer` is no optimizer.
      ValueError: arguments are invalid or contradict each other, or `optimizer` is a distributed optimizer already.

    Example:
      >>> import torch
      >>> model = torch.nn.Linear(4, 2)
      >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
      >>> optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
      >>> loss = model(torch.ones(8, 4)).sum()
      >>> loss.backward()
      >>> _ = optimizer.step()
    """
    process_sets.known(process_set)
    # Not isinstance: optimizers of other packages need not derive from torch's.
    if isinstance(optimizer, type) or not (hasattr(optimizer, "param_groups") and hasattr(optimizer, "step")):
        given = f"the class {optimizer.__name__}" if isinstance(optimizer, type) else class_of(optimizer)
        raise TypeError(f"hvd.DistributedOptimizer needs a torch.optim.Optimizer, got {given}")
    if isinstance(optimizer, WrappedOptimizer):
        raise ValueError("The optimizer is a hvd.DistributedOptimizer already.")
    check_predivide(op, gradient_predivide_factor)
    check_compression(compression)
    backward_passes_per_step = checked_passes(backward_passes_per_step)
    if num_groups != 0:
        _warnings.warn("`num_groups` is deprecated: use `groups`", DeprecationWarning)
        groups = num_groups if groups is None else groups
    checked_groups = _checked_groups(groups)
    settings: dict[str, Any] = dict(
        compression=compression,
        backward_passes_per_step=backward_passes_per_step,
        sparse_as_dense=sparse_as_dense,
        process_set=process_set,
    )
    if op == Adasum:
        return _wrap(optimizer, AdasumOptimizer, named_parameters, settings)
    settings.update(op=op, predivide=gradient_predivide_factor, groups=checked_groups)
    return _wrap(optimizer, GradientOptimizer, named_parameters, settings)


def _checked_groups(groups: object) -> Union[int, list[list[torch.Tensor]], None]:
    """Returns `groups` as a number or as lists. Raises ValueError if :func:`DistributedOptimizer` does not take them."""
    if groups is None:
        return None
    if not isinstance(groups, list):
        number = operator.index(groups) if hasattr(groups, "__index__") else 0
        if number <= 0:
            raise ValueError(_BAD_GROUPS)
        return number
    # A tensor can be iterated over as well, but its rows are no parameters.
    if not all(is_iterable(group) and not isinstance(group, torch.Tensor) for group in groups):
        raise ValueError(_BAD_GROUPS)
    lists = [list(group) for group in groups]
    tensors = [tensor for group in lists for tensor in group]
    if not all(isinstance(tensor, torch.Tensor) for tensor in tensors):
        raise ValueError(_BAD_GROUPS)
    if len({id(tensor) for tensor in tensors}) != len(tensors):
        raise ValueError("groups: a parameter is in two groups, or twice in one")
    return lists


def _wrap(
    optimizer: torch.optim.Optimizer,
    kind: type[WrappedOptimizer],
    named_parameters: Optional[Iterable[tuple[str, torch.nn.Parameter]]],
    settings: dict[str, object],
) -> WrappedOptimizer:
    own, place = type(optimizer), {"__module__": __name__}
    # One class between, since Lightning 1.x makes a class of the first base of this one.
    combined = type(own.__name__, (kind, own), dict(place, __reduce_ex__=_reduced))
    wrapped: Any = object.__new__(type(own.__name__, (combined,), place))
    # The same groups and state, not copies: a change of one optimizer changes both.
    attributes = dict(vars(optimizer))
    attributes.pop("step", None)  # a learning rate scheduler's wrapper of the other's method
    vars(wrapped).update(attributes)
    wrapped._given = weakref.ref(optimizer)
    wrapped._setup(named_parameters, **settings)
    wrapped._made_of = (own, kind, settings)
    wrapped._ours = {"_ours", *vars(wrapped)} - attributes.keys()
    result: WrappedOptimizer = wrapped
    return result


def _reduced(wrapped: Any, _: object) -> tuple[object, ...]:
    """Implements ``__reduce_ex__``: copies and pickles are distributed optimizers of the parameters that are copied with them."""
    own, kind, settings = wrapped._made_of
    named = [(name, p) for p, name in wrapped._parameter_names.items()]
    settings = {**settings, **wrapped._changed_settings()}
    state = {name: value for name, value in wrapped.__getstate__().items() if name not in wrapped._ours}
    return _made_again, (own, kind, named, settings, state)


def _made_again(
    own: type,
    kind: type[WrappedOptimizer],
    named: list[tuple[str, torch.nn.Parameter]],
    settings: dict[str, object],
    state: dict[str, object],
) -> WrappedOptimizer:
    optimizer: Any = object.__new__(own)
    optimizer.__setstate__(state)
    return _wrap(optimizer, kind, named, settings)
