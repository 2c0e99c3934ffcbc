"""An estimator for Spark that trains models by PyTorch Lightning: ``import horovod.spark.lightning as hvd``."""

from horovod.torch import _package  # noqa: F401  # first: says what is missing

# isort: split
from horovod.spark.lightning.estimator import TorchEstimator, TorchModel

__all__ = ["TorchEstimator", "TorchModel"]
