"""Data loaders: a base class of loaders of batches, and a mixin that reads ahead on a thread."""

from horovod.data.data_loader_base import AsyncDataLoaderMixin, BaseDataLoader

__all__ = ["AsyncDataLoaderMixin", "BaseDataLoader"]
