"""An estimator for Spark that trains PyTorch models: ``import horovod.spark.torch as hvd``."""

from horovod.torch import _package  # noqa: F401  # first: says what is missing

# isort: split
from horovod.spark.torch.estimator import TorchEstimator, TorchModel

__all__ = ["TorchEstimator", "TorchModel"]
