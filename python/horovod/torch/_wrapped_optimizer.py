"""The common base of the distributed optimizers: names and hooks of parameters, shared groups and state."""

import collections
import contextlib
import itertools
import sys
import weakref
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Callable, Optional

import torch

from horovod import _ffi
from horovod.common import _process, process_sets
from horovod.common.optimizer_arguments import checked_passes
from horovod.common.process_sets import ProcessSet
from horovod.common.util import is_elastic
from horovod.torch._dropped_optimizers import DropWatch
from horovod.torch._kept_objects import same_groups_and_state
from horovod.torch._tensors import check_has_memory, not_compiled
from horovod.torch.compression import Compressor

if TYPE_CHECKING:
    from torch.autograd.graph import Node
    from torch.utils.hooks import RemovableHandle


def in_backward(unknown: bool = False) -> bool:
    """Returns whether this thread is in backward(); `unknown` if this version of torch can't tell."""
    current = getattr(torch._C, "_current_graph_task_id", None)
    return unknown if current is None else current() != -1


def _can_be_trained(p: torch.Tensor) -> bool:
    """Returns whether the script may ever set p.requires_grad."""
    return p.requires_grad or ((p.is_floating_point() or p.is_complex()) and not p.is_inference())


def _accumulator_of(p: torch.Tensor) -> "Node":
    """Returns the graph's node that adds to the gradient of `p`, which requires one."""
    node = p.expand_as(p).grad_fn
    assert node is not None
    accumulator = node.next_functions[0][0]
    assert accumulator is not None
    return accumulator


@contextlib.contextmanager
def _trained_meanwhile(p: torch.Tensor) -> Iterator[None]:
    """Returns a context in which torch lets a hook be added to `p`, also if it is frozen: the script may train it later."""
    frozen = not p.requires_grad
    with torch.enable_grad():
        p.requires_grad_(True)
        try:
            yield
        finally:
            if frozen:
                p.requires_grad_(False)


# How many optimizers of this world have a parameter of that name, by process set.
_named: dict[tuple[Optional[int], str], int] = collections.defaultdict(int)
_process.on_init(_named.clear)

# A scaler's method may read through a property of an object between.
_READING_FRAMES = 3


def _read_by_scaler() -> bool:
    """Returns whether a gradient scaler's method, of torch or any other class with unscale_(), reads the calling property."""
    frame = sys._getframe(2)
    for _ in range(_READING_FRAMES):
        if hasattr(type(frame.f_locals.get("self")), "unscale_"):
            return True
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False


def _behind(wrapped: type, name: str) -> Any:
    """Returns the descriptor of that name of the class that is wrapped, or None."""
    classes = [each for each in wrapped.__mro__ if not issubclass(each, WrappedOptimizer)]
    return next((vars(each)[name] for each in classes if name in vars(each)), None)


# A mixin: the next base class is an optimizer's class, which is not known here.
if TYPE_CHECKING:
    _Behind = torch.optim.Optimizer
else:
    _Behind = object


class WrappedOptimizer(_Behind):
    """The base class that precedes a torch optimizer's class in a class made for it, and calls that class through super().

    Not thread-safe, like torch's optimizers. Subclasses define `_setup`, which calls `_setup_parameters`, and
    `_gradient_arrived`, `_has_unfinished_gradients`, `_finish_gradients` and `_open_group`.
    """

    _given: Callable[[], Any]  # the optimizer that this one was made of; None if the script has dropped it

    def _setup_parameters(
        self,
        named_parameters: Optional[Iterable[tuple[str, torch.nn.Parameter]]],
        compression: type[Compressor[torch.Tensor]],
        backward_passes_per_step: int,
        sparse_as_dense: bool,
        process_set: ProcessSet,
        prefix: Optional[str] = None,
    ) -> None:
        self.process_set = process_set
        self._compression = compression
        self.backward_passes_per_step = backward_passes_per_step
        self.sparse_as_dense = sparse_as_dense
        self._should_synchronize = True
        self._parameter_names: dict[torch.Tensor, str] = {}
        self._grad_accumulators: dict[torch.Tensor, Node] = {}
        self._hooks: dict[torch.Tensor, RemovableHandle] = {}
        self._drop_watch = DropWatch(self)
        self._adopted: list[torch.Tensor] = []
        if named_parameters is not None:
            self._parameter_names.update(self._checked_names(named_parameters))
        self._adopt_parameters()
        self._prefix = self._new_prefix() if prefix is None else prefix

    def _open_group(self) -> str:
        """Returns the setting by which backward() has left gradients unreduced, for a message; "": there are none."""
        raise NotImplementedError

    # Parameters.

    def _new_prefix(self) -> str:
        """Returns what tells this optimizer's operations from those of earlier optimizers whose parameters have the same names."""
        if is_elastic():  # there ranks make their optimizers at different times
            return ""
        keys = [(self.process_set.process_set_id, self._parameter_names[p]) for p in self._parameters()]
        number = max((_named[key] for key in keys), default=0)
        _named.update((key, number + 1) for key in keys)
        return f"optimizer{number}." if number else ""

    def _operation_name(self, p: torch.Tensor) -> str:
        return self._prefix + self._parameter_names[p]

    def _groups(self) -> list[dict[str, Any]]:
        own = vars(self)
        # An optimizer around another one may have a property that gives that one's groups.
        groups: list[dict[str, object]] = own["param_groups"] if "param_groups" in own else super().param_groups
        return groups

    def _parameters(self) -> list[torch.Tensor]:
        return [p for group in self._groups() for p in group["params"]]

    def _trained(self) -> list[torch.Tensor]:
        """Returns the parameters that take part, in the same order on all ranks."""
        return [p for p in self._parameters() if p.requires_grad]

    def _reduces(self) -> bool:
        """Returns whether gradients are reduced with those of other ranks."""
        return process_sets.takes_part(self.process_set)

    @staticmethod
    def find_duplicates(names: Iterable[str]) -> set[str]:
        """Returns the names that occur more than once."""
        return {name for name, count in collections.Counter(names).items() if count > 1}

    def _checked_names(self, named_parameters: Iterable[tuple[str, torch.nn.Parameter]]) -> dict[torch.Tensor, str]:
        named = list(named_parameters)
        if any(not isinstance(item, tuple) for item in named):
            raise ValueError(
                "named_parameters must be pairs of a name and a parameter: pass model.named_parameters(), "
                "not model.parameters()"
            )
        duplicates = self.find_duplicates(name for name, _ in named)
        if duplicates:
            raise ValueError(
                "named_parameters has two parameters of one name, which must differ: {}".format(
                    ", ".join(sorted(duplicates))
                )
            )
        names: dict[torch.Tensor, str] = {parameter: name for name, parameter in named}
        missing = [p for p in self._parameters() if p not in names]
        if missing:
            raise ValueError(
                "named_parameters was specified, but does not name all parameters: {}".format(
                    ", ".join(f"of shape {list(p.shape)}" for p in missing)
                )
            )
        return names

    def _adopt_parameters(self) -> list[torch.Tensor]:
        """Takes over the parameters of the groups, which a script may change by hand, too: gives new ones a name and a hook, and drops
        those that have left. Returns the new ones.
        """
        own = self._parameters()
        # Identities are compared faster than tensors. Those of parameters that are kept here are not used again.
        if [id(p) for p in own] == [id(p) for p in self._adopted]:
            return []
        before, now = set(self._adopted), set(own)
        for p in before - now:
            self._drop_parameter(p)
        for i, group in enumerate(self._groups()):
            for j, p in enumerate(group["params"]):
                if p not in self._parameter_names:
                    self._parameter_names[p] = self._free_name(f"allreduce.noname.{i}.{j}")
        self._adopted = own
        # The members of the set may change with the world.
        if is_elastic() or self._reduces():
            for p in own:
                if p not in self._hooks and _can_be_trained(p):
                    self._install_hook(p)
                    self._drop_watch.add(p)
        return [p for p in own if p not in before]

    def _free_name(self, name: str) -> str:
        taken = set(self._parameter_names.values())
        return next(
            each for each in itertools.chain([name], (f"{name}.{n}" for n in itertools.count(1))) if each not in taken
        )

    def _drop_parameter(self, p: torch.Tensor) -> None:
        hook = self._hooks.pop(p, None)
        if hook is not None:
            hook.remove()
        self._grad_accumulators.pop(p, None)
        self._parameter_names.pop(p, None)

    def _install_hook(self, p: torch.Tensor) -> None:
        check_has_memory(p, f"parameter {self._parameter_names[p]}", "DistributedOptimizer")
        # A parameter must not keep an optimizer alive that the script has dropped, nor itself.
        this, of = weakref.ref(self), weakref.ref(p)

        @not_compiled
        def hook(*_: object) -> None:
            optimizer, parameter = this(), of()
            if optimizer is not None and parameter is not None:
                optimizer._gradient_arrived(parameter)

        with _trained_meanwhile(p):
            if hasattr(p, "register_post_accumulate_grad_hook"):
                self._hooks[p] = p.register_post_accumulate_grad_hook(hook)
                return
            # Older torch: the graph's node that adds to p.grad; it exists while something refers to it.
            accumulator = _accumulator_of(p)
            self._hooks[p] = accumulator.register_hook(hook)
            self._grad_accumulators[p] = accumulator

    def _renew_hooks(self) -> None:
        """Adds the hooks to parameters of older torch that have another accumulator now, as after to(), cuda() or set_()."""
        for p, accumulator in list(self._grad_accumulators.items()):
            with _trained_meanwhile(p):
                is_same = _accumulator_of(p) is accumulator
            if not is_same:
                self._install_hook(p)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group as the wrapped optimizer does; the new parameters' gradients are reduced as well."""
        super().add_param_group(param_group)
        self._adopt_parameters()

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Sets how many (> 0) backward() calls accumulate gradients before these are reduced."""
        self.backward_passes_per_step = checked_passes(passes)

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The parameter groups. A gradient scaler that reads them after backward() completes the gradients first."""
        # No other code does: the other ranks might wait for what this rank does next.
        if self._has_unfinished_gradients() and not in_backward() and _read_by_scaler():
            self._finish_gradients()
        return self._groups()

    @param_groups.setter
    def param_groups(self, groups: list[dict[str, Any]]) -> None:
        behind = _behind(type(self), "param_groups")
        if behind is None:
            self.__dict__["param_groups"] = groups
        elif groups is not self._groups():
            behind.__set__(self, groups)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state as the wrapped optimizer does. Groups and state stay the same objects, because others, such as schedulers,
        refer to them.
        """
        with same_groups_and_state(self):
            super().load_state_dict(state_dict)

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """Zeroes the gradients as the wrapped optimizer does."""
        super().zero_grad(*args, **kwargs)
        self._renew_hooks()

    def _step_as_wrapped(self, closure: Optional[Callable[[], Any]], kwargs: dict[str, Any]) -> Any:
        self._drop_watch.end()
        result = super().step(**kwargs) if closure is None else super().step(closure, **kwargs)
        _ffi.count_step()
        self._renew_hooks()
        # Schedulers that were made for the optimizer that was wrapped ask it whether it has stepped.
        given = self._given()
        if given is not None:
            given._opt_called = True
            given._step_count = getattr(given, "_step_count", 0) + 1
        return result

    def _changed_settings(self) -> dict[str, Any]:
        """Returns the settings that differ from those passed to `_setup_parameters` and `_setup`; a copy gets them."""
        return {"backward_passes_per_step": self.backward_passes_per_step, "prefix": self._prefix}

    # For subclasses, which document the public ones.

    def synchronize(self) -> None:
        raise NotImplementedError

    def skip_synchronize(self) -> contextlib.AbstractContextManager[None]:
        raise NotImplementedError

    def no_sync(self) -> contextlib.AbstractContextManager[None]:
        raise NotImplementedError

    def _gradient_arrived(self, p: torch.Tensor) -> None:
        """Is called when backward() has added to p.grad."""
        raise NotImplementedError

    def _has_unfinished_gradients(self) -> bool:
        """Returns whether backward() has left gradients unreduced."""
        raise NotImplementedError

    def _finish_gradients(self) -> None:
        """Completes gradients that backward() has left unreduced, before they are read."""
        raise NotImplementedError
