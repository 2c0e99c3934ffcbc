"""Batch normalization with the statistics of all ranks' batches."""

from typing import Any, Callable, Optional

import torch
from torch.autograd.function import once_differentiable
from torch.nn.modules.batchnorm import _BatchNorm

from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.torch.mpi_ops import Sum, allgather, allreduce_


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over the combined batch of all ranks, for training with small batches on each rank.

    In training, mean and variance are those of all ranks' inputs; the ranks' batches may differ in size, and may be empty.
    Evaluation uses the running statistics and communicates nothing; without them (``track_running_stats=False``) it
    uses those of all ranks' inputs as training does, so all ranks must take part. Inputs are [N, C] or [N, C, ...],
    on any device; the statistics of half-precision inputs are computed in float32. The parameters' gradients are
    those of this rank's part of the batch; :func:`hvd.DistributedOptimizer` reduces them.

    Args:
      num_features: the number of channels, C.
      eps, momentum, affine, track_running_stats: as in torch.nn.BatchNorm2d.
      process_set: the ranks whose batches are combined; by default all ranks. All its members must run the layer equally
        often.

    Raises:
      ValueError: an input has fewer than two dimensions, or all ranks together have at most one value per channel.

    Example:
      >>> import torch
      >>> layer = hvd.SyncBatchNorm(3)
      >>> layer(torch.randn(4, 3, 8, 8)).shape
      torch.Size([4, 3, 8, 8])
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: Optional[float] = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_set: ProcessSet = global_process_set,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats)
        self.process_set = process_set

    @classmethod
    def convert_sync_batchnorm(
        cls, module: torch.nn.Module, process_set: ProcessSet = global_process_set
    ) -> torch.nn.Module:
        """Replaces each torch.nn.BatchNorm*d in `module`, or `module` itself, by a SyncBatchNorm.

        Args:
          module: the module, which is changed in place unless it is a BatchNorm itself.
          process_set: the ranks whose batches are combined.

        Returns:
          `module`, or the layer that replaces it. New layers share parameters and buffers with those that they replace.

        Example:
          >>> import torch
          >>> model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
          >>> type(hvd.SyncBatchNorm.convert_sync_batchnorm(model)[1]).__name__
          'SyncBatchNorm'
        """
        if isinstance(module, _BatchNorm) and not isinstance(module, cls):
            return cls._converted(module, process_set)
        for name, child in module.named_children():
            converted = cls.convert_sync_batchnorm(child, process_set)
            if converted is not child:
                setattr(module, name, converted)
        return module

    @classmethod
    def _converted(cls, module: _BatchNorm, process_set: ProcessSet) -> "SyncBatchNorm":
        settings = (module.eps, module.momentum, module.affine, module.track_running_stats)
        result = cls(module.num_features, *settings, process_set=process_set)
        result.weight, result.bias = module.weight, module.bias
        for name, buffer in module.named_buffers(recurse=False):
            setattr(result, name, buffer)
        result.training = module.training
        return result

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"SyncBatchNorm needs an input of shape [N, C, ...], not of {input.dim()} dimensions")

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Normalizes a batch.

        Args:
          input: a tensor of shape [N, C] or [N, C, ...].

        Returns:
          The normalized tensor, shaped and typed as `input`.
        """
        self._check_input_dim(input)
        if self.process_set.size() == 1 and not self.training and not self.track_running_stats:
            return torch.nn.functional.batch_norm(
                input, None, None, self.weight, self.bias, training=True, eps=self.eps
            )
        if (self.track_running_stats and not self.training) or self.process_set.size() == 1:
            return super().forward(input)
        apply: Callable[..., tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]] = _SyncBatchNormFunction.apply
        output, mean, variance, count = apply(input, self.weight, self.bias, self.eps, self.process_set)
        if self.track_running_stats:
            self._track(mean, variance * (count / (count - 1)))
        return output

    def _track(self, mean: torch.Tensor, variance: torch.Tensor) -> None:
        with torch.no_grad():
            tracked, share = self.num_batches_tracked, self.momentum
            assert tracked is not None  # as track_running_stats is set
            tracked += 1
            if share is None:  # a cumulative average
                share = 1.0 / float(tracked)
            for running, of_batch in ((self.running_mean, mean), (self.running_var, variance)):
                assert running is not None
                # Not in half precision, of which some versions of torch have no lerp on the CPU.
                running.copy_(torch.lerp(running.to(of_batch.dtype), of_batch, share))


def _per_channel(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Returns a tensor of shape [C] in a shape that broadcasts along `like`'s dimension 1."""
    return values.reshape([1, -1] + [1] * (like.dim() - 2))


class _SyncBatchNormFunction(torch.autograd.Function):
    """The autograd function. Statistics are combined as in Chan, Golub, LeVeque: Updating Formulae and a Pairwise Algorithm for
    Computing Sample Variances, 1979, which is accurate even if the mean is much larger than the deviation.
    """

    @staticmethod
    def forward(
        ctx: Any,
        input: torch.Tensor,
        weight: Optional[torch.Tensor],
        bias: Optional[torch.Tensor],
        eps: float,
        process_set: ProcessSet,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
        precise = torch.float64 if input.dtype == torch.float64 else torch.float32
        values = input.to(precise)
        mean, variance, count = _statistics(values, process_set)
        if count <= 1:
            raise ValueError(
                f"Expected more than 1 value per channel when training, got input size {list(input.shape)} on this "
                f"rank and {count} on all ranks together"
            )
        scale = torch.rsqrt(variance + eps)
        normalized = (values - _per_channel(mean, values)) * _per_channel(scale, values)
        ctx.save_for_backward(normalized, scale, weight)
        ctx.count, ctx.process_set, ctx.has_bias = count, process_set, bias is not None
        output = normalized
        if weight is not None:
            output = output * _per_channel(weight.to(precise), values)
        if bias is not None:  # newer torch makes layers with weights alone
            output = output + _per_channel(bias.to(precise), values)
        ctx.mark_non_differentiable(mean, variance)
        return output.to(input.dtype), mean, variance, count

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor, *_: object) -> tuple[Optional[torch.Tensor], ...]:
        normalized, scale, weight = ctx.saved_tensors
        values = grad.to(normalized.dtype)
        others = [d for d in range(values.dim()) if d != 1]
        sums = torch.stack([values.sum(others), (values * normalized).sum(others)])
        own_sums = None if weight is None else sums.clone()
        grad_input = grad_weight = grad_bias = None
        # Also if this rank's input needs no gradient: another rank's may.
        means = allreduce_(sums, name="sync_batch_norm.backward", op=Sum, process_set=ctx.process_set)
        means /= ctx.count
        if ctx.needs_input_grad[0]:
            grad_input = values - _per_channel(means[0], values)
            grad_input -= normalized * _per_channel(means[1], values)
            if weight is not None:
                scale = scale * weight.to(scale.dtype)
            grad_input = (grad_input * _per_channel(scale, values)).to(grad.dtype)
        if own_sums is not None:
            grad_bias, grad_weight = own_sums.to(weight.dtype)
            if not ctx.has_bias:
                grad_bias = None
        return grad_input, grad_weight, grad_bias, None, None


def _statistics(values: torch.Tensor, process_set: ProcessSet) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Returns mean and (biased) variance of each channel, both of shape [C], over all ranks' `values`, and the number of values of a
    channel.
    """
    channels = values.shape[1]
    others = [d for d in range(values.dim()) if d != 1]
    count = values.numel() // channels if channels else 0
    mean = values.sum(others) / max(count, 1)
    deviation = (values - _per_channel(mean, values)).square_().sum(others)
    own = torch.cat([mean.new_tensor([count]), mean, deviation]).unsqueeze(0)
    all_ranks = allgather(own, name="sync_batch_norm.forward", process_set=process_set)
    # In float32, counts are exact up to 2**24 values of a channel on a rank.
    counts = all_ranks[:, :1]
    means, deviations = all_ranks[:, 1 : channels + 1], all_ranks[:, channels + 1 :]
    total = int(counts.double().sum())
    mean = (means * counts).sum(0) / max(total, 1)
    deviation = deviations.sum(0) + ((means - mean).square() * counts).sum(0)
    return mean, deviation / max(total, 1), total
