"""``Trainer(sync_batchnorm=True)``: Horovod's batch normalization in place of torch's."""

import torch
from torch.nn.modules.batchnorm import _BatchNorm

import horovod.torch as hvd


class SyncBatchNormLayers:
    """A LayerSync, as Lightning calls it. For one model at a time."""

    def __init__(self) -> None:
        self._replaced: list[tuple[torch.nn.Module, str, _BatchNorm]] = []

    def apply(self, model: torch.nn.Module) -> torch.nn.Module:
        """Replaces the batch normalization layers in `model`; the new layers share parameters and buffers with the old ones."""
        self._replaced = [
            (parent, name, child)
            for parent in model.modules()
            for name, child in parent.named_children()
            if isinstance(child, _BatchNorm) and not isinstance(child, hvd.SyncBatchNorm)
        ]
        for parent, name, child in self._replaced:
            setattr(parent, name, hvd.SyncBatchNorm.convert_sync_batchnorm(child))
        return model

    def revert(self, model: torch.nn.Module) -> torch.nn.Module:
        """Puts the layers back that :meth:`apply` has replaced, with the current values of their parameters and buffers."""
        for parent, name, original in self._replaced:
            trained = getattr(parent, name)
            original._parameters.update(trained._parameters)
            original._buffers.update(trained._buffers)
            original.train(trained.training)
            setattr(parent, name, original)
        self._replaced = []
        return model
