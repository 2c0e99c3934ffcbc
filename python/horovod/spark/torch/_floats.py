"""Columns as tensors of floats, which models of PyTorch get."""

import torch

from horovod.spark.common._arrays import check_whole_numbers

_REMEDY = (
    "the model gets floats; a LightningModule, with horovod.spark.lightning.TorchEstimator, gets whole numbers, and a column of "
    "doubles is rounded"
)


def as_floats(name: str, values: torch.Tensor) -> torch.Tensor:
    """Returns the values of a column as float32.

    Raises:
      ValueError: there are whole numbers that would become others.
    """
    if not values.is_floating_point():
        check_whole_numbers(name, values.cpu().numpy(), "float32", _REMEDY)
    return values.float()
