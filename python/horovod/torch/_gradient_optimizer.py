"""The distributed optimizer that reduces gradients."""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple, Optional, Union

import torch

from horovod import _ffi
from horovod.common import ops
from horovod.common.collective import Call, reduction
from horovod.common.util import is_elastic, split_list
from horovod.torch._differentiable import collectives
from horovod.torch._tensors import not_compiled
from horovod.torch._wrapped_optimizer import WrappedOptimizer
from horovod.torch.compression import Compression
from horovod.torch.functions import broadcast_object
from horovod.torch.mpi_ops import sparse_allreduce_async

_TOO_MANY_PASSES = (
    "more than backward_passes_per_step backward passes came before step(): "
    "raise backward_passes_per_step to the number of passes for each step"
)
_ZERO_GRAD_IN_FLIGHT = (
    "zero_grad() came between backward() and step(), while gradients were being reduced: call it before "
    "backward(), or after step() or synchronize()"
)
_SYNCHRONIZED_BEFORE_STEP = (
    "step() after synchronize() does not reduce the gradients again: call it within "
    "`with optimizer.skip_synchronize():`"
)


class _Plain(NamedTuple):
    """A gradient that is being reduced in place."""

    p: torch.Tensor
    buffer: torch.Tensor

    def finish(self, compression: Any) -> None:
        if self.p.grad is not self.buffer:
            self.p.grad = self.buffer


class _Dense(NamedTuple):
    """A gradient that is being reduced in `buffer`, which compression has made from `grad`."""

    p: torch.Tensor
    grad: torch.Tensor
    buffer: torch.Tensor
    ctx: Any
    sparse_dim: int  # of the gradient that it stands for; 0: it was dense

    def finish(self, compression: Any) -> None:
        value = compression.decompress(self.buffer, self.ctx)
        if value.data_ptr() != self.grad.data_ptr():
            self.grad.detach().copy_(value)
        grad = self.grad.to_sparse(self.sparse_dim) if self.sparse_dim else self.grad
        if self.p.grad is not grad:
            self.p.grad = grad


class _Operation(NamedTuple):
    handle: int
    parts: list[Union[_Plain, _Dense]]


class _Group:
    """Parameters whose gradients are reduced together."""

    def __init__(self, parameters: list[torch.Tensor]) -> None:
        self.parameters = parameters
        self._next = 0  # before it none was missing, as far as is known

    def is_complete(self, ready: set[torch.Tensor]) -> bool:
        """Returns whether all trained parameters of the group are `ready`. It is called after each of them and resumes where it
        stopped, so a step examines each parameter only a few times.
        """
        while self._next < len(self.parameters):
            p = self.parameters[self._next]
            if p.requires_grad and p not in ready:
                return False
            self._next += 1
        self._next = 0
        return all(p in ready for p in self.trained())

    def trained(self) -> list[torch.Tensor]:
        return [p for p in self.parameters if p.requires_grad]


class _SparseOperation(NamedTuple):
    p: torch.Tensor
    finish: Callable[[], torch.Tensor]


class GradientOptimizer(WrappedOptimizer):
    """Starts a gradient's reduction when backward() has computed it, and waits for all reductions before a step."""

    def _setup(
        self,
        named_parameters: Any,
        op: int,
        predivide: float,
        groups: Union[int, list[list[torch.Tensor]], None],
        **settings: Any,
    ) -> None:
        self.op = op
        self.gradient_predivide_factor = predivide
        self._passes: dict[torch.Tensor, int] = {}  # backward() calls since the last reduction
        self._ready: set[torch.Tensor] = set()  # had all of their passes; reduced or in flight
        self._operations: list[Union[_Operation, _SparseOperation]] = []
        self._reduced = False  # gradients are reduced, and none has arrived since
        self._synchronized = False  # the user has called synchronize()
        self._local_only = False  # in no_sync()
        self._sparse_dims: dict[torch.Tensor, int] = {}  # of parameters seen with a sparse gradient
        self._group_of: dict[torch.Tensor, _Group] = {}
        self._setup_parameters(named_parameters, **settings)
        if groups is not None and (is_elastic() or self._reduces()):
            for parameters in self._as_lists(groups):
                group = _Group(parameters)
                self._group_of.update((p, group) for p in parameters)

    def _as_lists(self, groups: Union[int, list[list[torch.Tensor]]]) -> list[list[torch.Tensor]]:
        if not isinstance(groups, int):
            # Gradients of other optimizers' parameters do not arrive here, so their groups would never be complete.
            own = {p for group in self._groups() for p in group["params"]}
            return [[p for p in parameters if p in own] for parameters in groups]
        by_name = {self._parameter_names[p]: p for p in self._trained()}
        names = list(by_name)
        if not is_elastic():  # there ranks make their optimizers at different times
            name = "horovod.groups." + next(iter(names), "")
            root = self.process_set.ranks[0]  # type: ignore[index]  # a set that this rank is in has ranks
            names = broadcast_object(names, root, name, self.process_set)
        if set(names) != set(by_name):
            raise ValueError("groups: the ranks' optimizers have different parameters")
        parts = split_list([by_name[name] for name in names], groups)
        return [part for part in parts if part]

    def _changed_settings(self) -> dict[str, Any]:
        changed = super()._changed_settings()
        if self._group_of:  # the ranks have agreed on them, which a rank that copies its optimizer alone can't repeat
            changed["groups"] = [group.parameters for group in dict.fromkeys(self._group_of.values())]
        return changed

    # Starting.

    def _gradient_arrived(self, p: torch.Tensor) -> None:
        if not self._reduces():
            return
        if p in self._ready:
            raise AssertionError(_TOO_MANY_PASSES)
        self._reduced = False
        if self._local_only:
            return
        passes = self._passes[p] = self._passes.get(p, 0) + 1
        if passes >= self.backward_passes_per_step:
            try:
                self._start(p)
            except BaseException:
                self._forget()
                raise

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
            handle = collectives.allreduce.start_group(buffers, self._call(self._parameter_names[members[0]]))
            self._operations.append(_Operation(handle, parts))

    def _start_one(self, p: torch.Tensor) -> Union[_Operation, _SparseOperation]:
        name = self._parameter_names[p]
        part = self._plain(p)
        if part is None:
            self._fill_missing(p)
            if p.grad.is_sparse:
                self._note_sparse_dim(p)
                if not self.sparse_as_dense:
                    with torch.no_grad():
                        finish = sparse_allreduce_async(p.grad, name, self.op, self.process_set)
                    return _SparseOperation(p, finish)
            part = self._as_dense(p)
        handle = collectives.allreduce.start(part.buffer, self._call(name))
        return _Operation(handle, [part])

    def _call(self, name: str) -> Call:
        factor = self.gradient_predivide_factor
        return reduction(name, self.process_set, self.op, 1.0 / factor, factor, in_place=True)

    def _plain(self, p: torch.Tensor) -> Optional[_Plain]:
        """Returns the gradient if it can be reduced in place, else None."""
        grad = p.grad
        if grad is None or self._compression is not Compression.none or p in self._sparse_dims:
            return None
        is_plain = grad.layout == torch.strided and grad.is_contiguous()
        return _Plain(p, grad) if is_plain else None

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def _fill_missing(self, p: torch.Tensor) -> None:
        if p.grad is not None:
            return
        if p in self._sparse_dims and not self.sparse_as_dense:
            p.grad = torch.zeros(p.shape, dtype=p.dtype, device=p.device).to_sparse(self._sparse_dims[p])
        else:
            p.grad = torch.zeros_like(p)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def _note_sparse_dim(self, p: torch.Tensor) -> int:
        """Records the form of a sparse gradient, for steps in which this rank has none, and returns it."""
        if p in self._sparse_dims and p.grad._nnz() == 0:
            # zero_grad() has made all dimensions sparse, unlike the other ranks' gradients.
            p.grad = p.grad.to_dense().to_sparse(self._sparse_dims[p])
        else:
            self._sparse_dims[p] = p.grad.sparse_dim()
        return self._sparse_dims[p]

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def _as_dense(self, p: torch.Tensor) -> _Dense:
        self._fill_missing(p)
        grad, sparse_dim = p.grad, self._sparse_dims.get(p, 0)
        if grad.is_sparse:
            if not self.sparse_as_dense:
                raise ValueError(
                    f"{self._parameter_names[p]} is in a group and has a sparse gradient: use sparse_as_dense"
                )
            sparse_dim = self._note_sparse_dim(p)
            grad = p.grad.to_dense()
        compressed, ctx = self._compression.compress(grad.detach())
        return _Dense(p, grad, compressed.contiguous(), ctx, sparse_dim)

    # Finishing.

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def _finish(self) -> None:
        dense = [each for each in self._operations if isinstance(each, _Operation)]
        ops.synchronize_all([operation.handle for operation in dense])
        for operation in dense:
            for part in operation.parts:
                part.finish(self._compression)
        for each in self._operations:
            if isinstance(each, _SparseOperation):
                each.p.grad = each.finish()
        self._operations.clear()

    def _complete(self) -> None:
        """Starts the reductions that have not started, with zeros for missing gradients, and waits for all."""
        if self._reduced:
            return
        try:
            if self._reduces():
                for p in self._trained():
                    if p not in self._ready:
                        self._start(p)
                self._finish()
        except BaseException as error:
            # Ctrl-C must not wait for the interrupted operation, whose memory stays in use.
            self._forget(waits=isinstance(error, Exception))
            raise
        self._forget()
        self._reduced = True

    def _forget(self, waits: bool = True) -> None:
        for operation in self._operations:
            if waits and isinstance(operation, _Operation):
                ops.discard(operation.handle)
        self._operations.clear()
        self._ready.clear()
        self._passes.clear()

    def _has_unfinished_gradients(self) -> bool:
        return bool(self._ready)

    def _finish_gradients(self) -> None:
        self._complete()

    # The public methods.

    @not_compiled
    def synchronize(self) -> None:
        """Waits until all gradients are reduced, for code that uses them before step(), e.g. to clip them."""
        self._complete()
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
    def step(self, closure: Optional[Callable[[], Any]] = None, **kwargs: Any) -> Any:
        """Waits for the reductions, then steps as the wrapped optimizer does. Gradients are reduced after each call of `closure`,
        which must be called equally often on all ranks.
        """
        if closure is not None:
            kwargs["closure"] = self._reducing(closure)
        elif self._should_synchronize:
            if self._synchronized:
                warnings.warn(_SYNCHRONIZED_BEFORE_STEP, stacklevel=3)
            self._complete()
        result = super().step(**kwargs)
        _ffi.count_step()
        self._synchronized = False
        self._reduced = False
        return result

    step.hooked = True  # type: ignore[attr-defined]  # for torch: the wrapped optimizer's step runs the step hooks

    def _reducing(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        def reducing_closure() -> Any:
            with torch.enable_grad():
                loss = closure()
            self._complete()
            return loss

        return reducing_closure

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """Zeroes the gradients as the wrapped optimizer does, and drops an unfinished group of backward passes.

        Raises AssertionError while gradients are being reduced.
        """
        if self._ready:
            raise AssertionError(_ZERO_GRAD_IN_FLIGHT)
        self._passes.clear()
        self._reduced = False
        super().zero_grad(*args, **kwargs)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state as the wrapped optimizer does. Reductions in flight are dropped."""
        self._forget()
        self._synchronized = False
        self._reduced = False
        super().load_state_dict(state_dict)
