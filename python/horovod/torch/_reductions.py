"""The reductions of gradients in flight, and the groups of parameters that are reduced together."""

import gc
from typing import Any, Callable, NamedTuple, Union

import torch

from horovod.torch.compression import Compressor


def gradient_of(p: torch.Tensor) -> torch.Tensor:
    """Returns the gradient of a parameter that has one."""
    grad = p.grad
    assert grad is not None
    return grad


def is_part(grad: torch.Tensor) -> bool:
    """Returns whether a gradient is a part of a larger block, as in a flat buffer of all gradients. Its version then counts the
    changes of the other parts, too.
    """
    if grad.layout != torch.strided:
        return False
    storage = grad.untyped_storage() if hasattr(grad, "untyped_storage") else grad.storage()
    return bool(storage.nbytes() > grad.numel() * grad.element_size())


class Watched(NamedTuple):
    """A gradient as it was when its reduction started, or when backward() has left it to a later reduction. A change of it would be
    lost, or be mixed into the sum on one rank.
    """

    p: torch.Tensor
    grad: torch.Tensor
    version: int

    @classmethod
    def of(cls, p: torch.Tensor) -> "Watched":
        grad = gradient_of(p)
        return cls(p, grad, grad._version)

    def is_changed(self) -> bool:
        """Returns whether the gradient was changed or replaced."""
        return self.p.grad is not self.grad or (self.grad._version != self.version and not is_part(self.grad))

    def check(self, names: dict[torch.Tensor, str]) -> None:
        """Raises RuntimeError if the gradient was changed or replaced."""
        if not self.is_changed():
            return
        changed = f"the gradient of {names[self.p]} was changed while the ranks reduced it"
        if _is_in_ddp(self.p):
            raise RuntimeError(
                f"{changed}: by DistributedDataParallel, which reduces it as well. Use one of the two: give "
                "hvd.DistributedOptimizer the bare model, or use DDP with a plain optimizer. If a library wraps the model, "
                "start the job with horovodrun --no-torch-env"
            )
        raise RuntimeError(
            f"{changed}: in a hook, change it before "
            "the optimizer sees it (Tensor.register_hook); after backward(), call optimizer.synchronize() first"
        )


def _is_in_ddp(p: torch.Tensor) -> bool:
    """Returns whether a model that contains the parameter is in a DistributedDataParallel. Slow: for errors."""
    if not torch.distributed.is_available():
        return False
    kind = torch.nn.parallel.DistributedDataParallel
    wrappers = [each for each in gc.get_objects() if issubclass(type(each), kind)]
    return any(own is p for wrapper in wrappers for own in wrapper.parameters())


class Plain(NamedTuple):
    """A gradient that is being reduced in place."""

    watched: Watched

    @property
    def buffer(self) -> torch.Tensor:
        return self.watched.grad

    def finish(self, compression: type[Compressor[torch.Tensor]]) -> None:
        pass


class Dense(NamedTuple):
    """A gradient that is being reduced in `buffer`, which compression has made from `grad`."""

    watched: Watched
    grad: torch.Tensor  # dense
    buffer: torch.Tensor
    ctx: Any
    sparse_dim: int  # of the gradient that it stands for; 0: it was dense

    def finish(self, compression: type[Compressor[torch.Tensor]]) -> None:
        value = compression.decompress(self.buffer, self.ctx)
        if value.data_ptr() != self.grad.data_ptr():
            self.grad.detach().copy_(value)
        grad = self.grad.to_sparse(self.sparse_dim) if self.sparse_dim else self.grad
        if self.watched.p.grad is not grad:
            self.watched.p.grad = grad


class Operation(NamedTuple):
    """A reduction of one gradient, or of a group's."""

    handle: int
    parts: list[Union[Plain, Dense]]

    def check(self, names: dict[torch.Tensor, str]) -> None:
        """Raises as :meth:`Watched.check`. Before the operation is waited for: results that come through host memory change gradients."""
        for part in self.parts:
            part.watched.check(names)

    def take(self, compression: type[Compressor[torch.Tensor]]) -> None:
        """Sets the gradients when the operation is complete."""
        for part in self.parts:
            part.finish(compression)


class Group:
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

    def drop(self, p: torch.Tensor) -> None:
        self.parameters = [other for other in self.parameters if other is not p]
        self._next = 0


class SparseOperation(NamedTuple):
    """A reduction of a sparse gradient."""

    watched: Watched
    finish: Callable[[], torch.Tensor]  # waits

    def check(self, names: dict[torch.Tensor, str]) -> None:
        """Raises as :meth:`Watched.check`."""
        self.watched.check(names)

    def take(self, _: object) -> None:
        """Waits, and sets the gradient."""
        self.watched.p.grad = self.finish()
