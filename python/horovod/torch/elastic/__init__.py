"""Elastic training with PyTorch: ``hvd.elastic``, which continues when workers fail, leave or join."""

from horovod.common.basics import init, shutdown  # noqa: F401
from horovod.elastic.loop import run
from horovod.torch.elastic.iterable import ElasticIterableDataset
from horovod.torch.elastic.sampler import ElasticSampler
from horovod.torch.elastic.state import ObjectState, State, TorchState, load_checkpoint

__all__ = ["ElasticIterableDataset", "ElasticSampler", "ObjectState", "State", "TorchState", "load_checkpoint", "run"]
