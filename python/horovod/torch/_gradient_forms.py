"""The forms in which an optimizer's gradients are reduced: in place, as a dense copy, or sparse."""

from typing import Optional

import torch

from horovod.torch._reductions import Dense, Plain, Watched, gradient_of
from horovod.torch._wrapped_optimizer import WrappedOptimizer
from horovod.torch.compression import Compression


class GradientForms(WrappedOptimizer):
    """Gives each gradient the form of the other ranks' gradients, also to one that this rank does not have."""

    _sparse_dims: dict[torch.Tensor, int]  # of parameters seen with a sparse gradient

    def _plain(self, p: torch.Tensor) -> Optional[Plain]:
        """Returns the gradient if it can be reduced in place, else None."""
        grad = p.grad
        if grad is None or self._compression is not Compression.none or p in self._sparse_dims:
            return None
        is_plain = grad.layout == torch.strided and grad.is_contiguous()
        return Plain(Watched.of(p)) if is_plain else None

    @torch.no_grad()
    def _fill_missing(self, p: torch.Tensor) -> None:
        if p.grad is not None:
            return
        # Newer torch lets a script choose the type of a parameter's gradients; None: any.
        dtype = getattr(p, "grad_dtype", None) or p.dtype
        if p in self._sparse_dims and not self.sparse_as_dense:
            p.grad = torch.zeros(p.shape, dtype=dtype, device=p.device).to_sparse(self._sparse_dims[p])
        else:
            p.grad = torch.zeros_like(p, dtype=dtype)

    @torch.no_grad()
    def _note_sparse_dim(self, p: torch.Tensor) -> int:
        """Records the form of a sparse gradient, for steps in which this rank has none, and returns it."""
        grad = gradient_of(p)
        if p in self._sparse_dims and grad._nnz() == 0:
            # zero_grad() has made all dimensions sparse, unlike the other ranks' gradients.
            p.grad = grad.to_dense().to_sparse(self._sparse_dims[p])
        else:
            self._sparse_dims[p] = grad.sparse_dim()
        return self._sparse_dims[p]

    @torch.no_grad()
    def _as_dense(self, p: torch.Tensor) -> Dense:
        self._fill_missing(p)
        grad, sparse_dim = gradient_of(p), self._sparse_dims.get(p, 0)
        if grad.is_sparse:
            if not self.sparse_as_dense:
                raise ValueError(
                    f"{self._parameter_names[p]} is in a group and has a sparse gradient: use sparse_as_dense"
                )
            sparse_dim = self._note_sparse_dim(p)
            grad = gradient_of(p).to_dense()
        compressed, ctx = self._compression.compress(grad.detach())
        return Dense(Watched.of(p), grad, compressed.contiguous(), ctx, sparse_dim)
