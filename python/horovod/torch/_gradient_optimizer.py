"""The distributed optimizer that reduces gradients."""

import collections
import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, Callable, Optional, Union

import torch

from horovod.common import _process, _warnings, ops
from horovod.common.collective import Call, reduction
from horovod.common.exceptions import HorovodRequestError
from horovod.common.util import is_elastic, split_list
from horovod.torch._agreement import Agreement, explained
from horovod.torch._backward_end import BackwardEnd, is_nested, warn_if_unseen
from horovod.torch._closure_loss import decides_by_loss, loss_of_all
from horovod.torch._differentiable import collectives
from horovod.torch._local_gradients import LocalGradients
from horovod.torch._rates import Rates
from horovod.torch._reduced_gradients import ReducedGradients
from horovod.torch._reductions import Dense, Group, Operation, Plain, SparseOperation, Watched, gradient_of
from horovod.torch._shared_parameters import SharedParameters
from horovod.torch._tensors import not_compiled
from horovod.torch._wrapped_optimizer import in_backward
from horovod.torch.functions import broadcast_object
from horovod.torch.mpi_ops import Average, Sum, sparse_allreduce_async

_TOO_MANY_PASSES = (
    "more than backward_passes_per_step backward passes came before step(): {name} has another gradient after its "
    "reduction has begun. Raise backward_passes_per_step to the number of passes for each step, or drop a step by zero_grad(); "
    "when a backward() has failed, call step() before the next; checkpointing of a layer that is used repeatedly needs "
    "use_reentrant=False"
)
_ZERO_GRAD_IN_FLIGHT = (
    "zero_grad() came while gradients were being reduced, within backward() or after one that failed: a rank can't drop a step "
    "alone; after a failure call step() as the other ranks do, or let the job end"
)
_SYNCHRONIZED_BEFORE_STEP = (
    "step() after synchronize() does not reduce the gradients again: call it within "
    "`with optimizer.skip_synchronize():`"
)


class GradientOptimizer(SharedParameters):
    """Starts a gradient's reduction when backward() has computed it, and waits for the reductions at the end of backward().

    The ranks reduce at the end of backward() what arrived on any rank, as they find out by an :class:`Agreement`; a rank
    without such a gradient gives zeros. What arrived on no rank may come with the next backward(), so it is left to step(), in
    which all ranks give zeros. A rank whose backward() is at its end is answered by the others' backward(), step() or
    synchronize(), whichever comes first.
    """

    def _setup(
        self,
        named_parameters: Optional[Iterable[tuple[str, torch.nn.Parameter]]],
        op: int,
        predivide: float,
        groups: Union[int, list[list[torch.Tensor]], None],
        **settings: Any,
    ) -> None:
        self._setup_sharing(op)
        self.gradient_predivide_factor = predivide
        self._passes: dict[torch.Tensor, int] = {}  # backward() calls since the last reduction
        self._backwards = 0  # that have ended since the last reduction
        self._arrived: set[torch.Tensor] = set()  # gradients that are not reduced yet
        self._local_gradients = LocalGradients()  # those of them that a backward() has left
        self._early = ReducedGradients()  # those that a step within backward() has reduced before their hooks
        self._ready: set[torch.Tensor] = set()  # had all of their passes; in flight
        self._backward_end = BackwardEnd()
        self._agreement: Optional[Agreement] = None
        self._agreements = 0  # since the last step
        self._rates = Rates()
        self._every: list[torch.Tensor] = []  # parameter, by name
        self._operations: list[Union[Operation, SparseOperation]] = []
        self._reduced = False  # all gradients are reduced, also those that no rank has, and none has arrived since
        self._synchronized = False  # the user has called synchronize()
        self._local_only = False  # in no_sync()
        self._sparse_dims = {}
        self._group_of: dict[torch.Tensor, Group] = {}
        self._setup_parameters(named_parameters, **settings)
        if groups is not None and (is_elastic() or self._reduces()):
            for parameters in self._as_lists(groups):
                group = Group(parameters)
                self._group_of.update((p, group) for p in parameters)
        self.take_parameters()

    def _as_lists(self, groups: Union[int, list[list[torch.Tensor]]]) -> list[list[torch.Tensor]]:
        if not isinstance(groups, int):
            # Gradients of other optimizers' parameters do not arrive here, so their groups would never be complete.
            own = set(self._parameters())
            return [[p for p in parameters if p in own] for parameters in groups]
        by_name = {self._parameter_names[p]: p for p in self._trained()}
        names = list(by_name)
        if not is_elastic():  # there ranks make their optimizers at different times
            name = "horovod.groups." + self._prefix + next(iter(names), "")
            root = self.process_set.ranks[0]  # type: ignore[index]  # a set that this rank is in has ranks
            names = broadcast_object(names, root, name, self.process_set)
        if set(names) != set(by_name):
            raise ValueError("groups: the ranks' optimizers have different parameters")
        parts = split_list([by_name[name] for name in names], groups)
        return [part for part in parts if part]

    def _changed_settings(self) -> dict[str, object]:
        changed = super()._changed_settings()
        if self._group_of:  # the ranks have agreed on them, which a rank that copies its optimizer alone can't repeat
            changed["groups"] = [group.parameters for group in dict.fromkeys(self._group_of.values())]
        return changed

    # Starting.

    def _adopt_parameters(self) -> list[torch.Tensor]:
        new = super()._adopt_parameters()
        if len(self._every) != len(self._adopted) or new:
            self._every = sorted(self._adopted, key=self._parameter_names.__getitem__)
        return new

    def _drop_parameter(self, p: torch.Tensor) -> None:
        super()._drop_parameter(p)
        group = self._group_of.pop(p, None)
        if group is not None:
            if not all(
                other in self._ready for other in group.trained()
            ):  # it waits, perhaps for this one: begin again
                self._ready.difference_update(group.parameters)
            group.drop(p)
        self._leave_parameter(p)
        for parameters in (self._arrived, self._ready, self._done):
            parameters.discard(p)
        self._local_gradients.drop(p)
        self._early.drop(p)
        self._passes.pop(p, None)
        self._sparse_dims.pop(p, None)

    def _adopt_gradients(self) -> None:
        """Adopts parameters that the script has put into the groups by hand. The hook of none has seen its gradient."""
        new = self._adopt_parameters()
        if new:
            self.take_parameters()
            self._arrived.update(p for p in new if p.grad is not None)
            self._reduced = False

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group as the wrapped optimizer does; the new parameters' gradients are reduced as well."""
        super().add_param_group(param_group)
        self.take_parameters()

    def _gradient_arrived(self, p: torch.Tensor) -> None:
        # First: the reductions of a backward pass must not begin in a provisional world and go on in another one.
        if _process.is_deferred():
            _process.join_world()
        if not self._reduces() or self._is_reduced_by_another(p):
            return
        self._check_world()
        self._kept.drop(p)
        if self._early.takes_none_since(p):
            return
        if p in self._ready or (p in self._done and self.op != Average):
            raise AssertionError(_TOO_MANY_PASSES.format(name=self._parameter_names[p]))
        self._done.discard(p)
        self._arrived.add(p)
        self._local_gradients.drop(p)
        self._reduced = False
        if self._local_only:
            if not self._backward_end.is_awaited():
                self._backward_end.add(self._note_at_backward_end())
            return
        passes = self._passes[p] = self._passes.get(p, 0) + 1
        if passes >= self.backward_passes_per_step:
            with self._forgetting_on_error():
                self._start(p)
        if not self._backward_end.is_awaited() and not (is_nested() and self._lacks_gradients()):
            warn_if_unseen(self.process_set)
            self._backward_end.add(self._at_backward_end())

    def _check_world(self) -> None:
        """Drops what another world has left behind, once this process is in one."""
        if _process.is_deferred():
            _process.join_world()
        if self._world is not _process.process.world:
            self._forget()
            self._backward_end = BackwardEnd()
            self._rates = Rates()
            self._world = _process.process.world

    def _lacks_gradients(self) -> bool:
        return len(self._ready) < len(self._every) and any(p not in self._ready for p in self._trained())

    def _start(self, p: torch.Tensor) -> None:
        self._ready.add(p)
        group = self._group_of.get(p)
        if group is None:
            self._operations.append(self._start_one(p))
            return
        if group.is_complete(self._ready):
            members = group.trained()
            parts = [self._plain(member) or self._as_dense(member) for member in members]
            buffers = [part.buffer for part in parts]
            handle = collectives.allreduce.start_group(buffers, self._call(self._operation_name(members[0])))
            self._operations.append(Operation(handle, parts))

    def _start_one(self, p: torch.Tensor) -> Union[Operation, SparseOperation]:
        name = self._operation_name(p)
        part: Union[Plain, Dense, None] = self._plain(p)
        if part is None:
            self._fill_missing(p)
            if gradient_of(p).is_sparse:
                self._note_sparse_dim(p)
                if not self.sparse_as_dense:
                    with torch.no_grad():
                        finish = sparse_allreduce_async(gradient_of(p), name, self.op, self.process_set)
                    return SparseOperation(Watched.of(p), finish)
            part = self._as_dense(p)
        handle = collectives.allreduce.start(part.buffer, self._call(name))
        return Operation(handle, [part])

    def _call(self, name: str) -> Call:
        factor = self.gradient_predivide_factor
        return reduction(name, self.process_set, self.op, 1.0 / factor, factor, in_place=True)

    # Finishing.

    def _at_backward_end(self) -> Iterator[None]:
        """The work at the end of a backward pass, in stages; see :class:`BackwardEnd`."""
        self._backwards += 1
        if self._ready or self._backwards >= self.backward_passes_per_step:
            yield from self._reduce_arrived()
        else:
            yield from self._note_at_backward_end()

    def _note_at_backward_end(self) -> Iterator[None]:
        self._local_gradients.note(self._arrived)
        yield from ()

    def _reduce_arrived(self) -> Iterator[None]:
        """Reduces the gradients that have arrived on any rank, in stages."""
        self._adopt_gradients()
        with self._forgetting_on_error():
            self._ask(in_step=False)
            yield
            self._start_wanted()
            yield
            self._finish()

    def _reduce_all(self) -> None:
        """Reduces all gradients, with zeros for those that no rank has."""
        self._adopt_gradients()
        if self._reduced:
            return
        self._check_world()
        if self._shares:
            self.take_parameters(to_reduce=True)
        if self._reduces():
            self._local_gradients.warn_of_change(self._parameter_names)
            if in_backward(unknown=True):
                self._early.note(
                    p for p in self._trained() if p.grad is not None and p not in self._arrived and p not in self._done
                )
            with self._forgetting_on_error():
                while self._arrived or any(p not in self._done for p in self._trained()):
                    self._ask(in_step=True)
                    self._start_wanted()
                    self._finish()
            if self._shares:
                self._kept.note(self._trained())
        self._drop_counts()
        self._reduced = True

    def _ask(self, in_step: bool) -> None:
        name = self._operation_name(self._every[0])
        self._agreement = Agreement(
            name, self.process_set, self._every, self._arrived, in_step, self._agreements, self._rates
        )
        self._agreements += 1

    def _start_wanted(self) -> None:
        """Starts the reductions that other ranks want. If all are in flight, the answer is waited for together with them."""
        if len(self._ready) == len(self._every):
            return
        assert self._agreement is not None
        ops.synchronize(self._agreement.handle)
        wanted, all_in_step = self._agreement.answer()
        self._agreement = None
        if all_in_step:
            wanted += [p for p in self._trained() if p not in self._done]
        if self._group_of:
            wanted += [other for p in wanted if p in self._group_of for other in self._group_of[p].trained()]
        for p in wanted:
            if p not in self._ready:
                self._start(p)

    @torch.no_grad()
    def _finish(self) -> None:
        for each in self._operations:
            each.check(self._parameter_names)
        agreement, self._agreement = self._agreement, None
        handles = [each.handle for each in self._operations if isinstance(each, Operation)]
        ops.synchronize_all(handles if agreement is None else [*handles, agreement.handle])
        if agreement is not None:
            agreement.answer()
        for each in self._operations:
            each.take(self._compression)
        self._operations.clear()
        self._done |= self._ready
        self._drop_passes()

    @contextlib.contextmanager
    def _forgetting_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            # Ctrl-C must not wait for the interrupted operation, whose memory stays in use.
            self._forget(waits=isinstance(error, Exception))
            if isinstance(error, HorovodRequestError):
                raise explained(error, len(self._every)) from None
            raise

    def _drop_passes(self) -> None:
        self._ready.clear()
        self._arrived.clear()
        self._local_gradients.clear()
        self._passes.clear()
        self._backwards = 0

    def _drop_counts(self) -> None:
        self._drop_passes()
        self._done.clear()

    def _start_step(self) -> None:
        """Begins a step without gradients."""
        self._drop_counts()
        self._agreements = 0
        self._reduced = self._synchronized = False

    def _forget(self, waits: bool = True) -> None:
        """Drops all gradients and reductions."""
        for operation in self._operations:
            if waits and isinstance(operation, Operation):
                ops.discard(operation.handle)
        if waits and self._agreement is not None:
            ops.discard(self._agreement.handle)
        self._operations.clear()
        self._agreement = None
        self._kept.clear()
        self._early.clear()
        self._start_step()

    def _has_unfinished_gradients(self) -> bool:
        return bool(self._arrived) and not self._local_only

    def _finish_gradients(self) -> None:
        self._local_gradients.warn_of_change(self._parameter_names)
        collections.deque(self._reduce_arrived(), maxlen=0)

    def _open_group(self) -> str:
        if not self._arrived or self._world is not _process.process.world:
            return ""
        passes = self.backward_passes_per_step
        return "no_sync()" if self._local_only or passes == 1 else f"backward_passes_per_step={passes}"

    # The public methods.

    @not_compiled
    def synchronize(self) -> None:
        """Waits until all gradients are reduced. Gradients that no rank has become zeros. backward() has reduced all others."""
        self._reduce_all()
        self._synchronized = True

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Returns a context in which step() does not synchronize, because :meth:`synchronize` was called."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Returns a context in which backward() only adds to this rank's gradients. The first backward() or step() after it reduces
        the sum. All ranks must leave it before the same backward().

        It is for accumulation over a varying number of batches; see `backward_passes_per_step`, whose count it does not change.
        """
        before, self._local_only = self._local_only, True
        try:
            yield
        finally:
            self._local_only = before

    @not_compiled
    def step(self, closure: Optional[Callable[[], object]] = None, **kwargs: Any) -> Any:
        """Waits for the reductions, then steps as the wrapped optimizer does. Gradients are reduced after each call of `closure`,
        which must be called equally often on all ranks. So is the loss that it returns, if the optimizer may decide by it: all but
        those of torch do so, and LBFGS.
        """
        if closure is not None:
            if self._should_synchronize and (self._arrived or self._done):
                self._reduce_all()  # of a backward() before; not with each closure, whose own come later
            closure = self._reducing(closure)
        elif self._should_synchronize:
            if self._synchronized:
                _warnings.warn(_SYNCHRONIZED_BEFORE_STEP)
            self._reduce_all()
        self._rates.note(self._groups())
        result = self._step_as_wrapped(closure, kwargs)
        self._synchronized = False
        if not self._ready:
            self._start_step()
        self._early.renew()
        return result

    step.hooked = True  # type: ignore[attr-defined]  # for torch: the wrapped optimizer's step runs the step hooks

    def _reducing(self, closure: Callable[[], object]) -> Callable[[], object]:
        def reducing_closure() -> object:
            with torch.enable_grad():
                loss = closure()
            self._reduce_all()
            return self._loss_of_all(loss) if decides else loss

        decides = decides_by_loss(type(self))
        return reducing_closure

    def _loss_of_all(self, loss: object) -> object:
        if not self._reduces():
            return loss
        name = "horovod.loss." + self._operation_name(self._every[0])
        return loss_of_all(loss, name, self.op == Sum, self.process_set)

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """Zeroes the gradients as the wrapped optimizer does, and drops an unfinished group of backward passes.

        Raises AssertionError while gradients are being reduced.
        """
        if self._ready:
            raise AssertionError(_ZERO_GRAD_IN_FLIGHT)
        if self._shares:
            self.take_parameters()
        self._adopt_gradients()
        self._start_step()
        self._kept.clear()
        super().zero_grad(*args, **kwargs)
        self._early.renew()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state as the wrapped optimizer does. Reductions in flight are dropped."""
        self._forget()
        self._rates = Rates()
        super().load_state_dict(state_dict)
