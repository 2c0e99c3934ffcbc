"""Loaders of batches for trainings that read by themselves: a base class, and a mixin that reads ahead on a thread."""

from horovod.data.data_loader_base import AsyncDataLoaderMixin, BaseDataLoader

__all__ = ["AsyncDataLoaderMixin", "BaseDataLoader"]
