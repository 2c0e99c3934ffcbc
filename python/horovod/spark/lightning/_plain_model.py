"""Training of plain torch.nn.Modules by Lightning."""

import dataclasses
import importlib
from typing import Any, Optional

import torch

from horovod.spark.torch._floats import as_floats
from horovod.spark.torch._losses import as_list, calculate_loss, shaped_labels


@dataclasses.dataclass
class PlainModel:
    """A model with an optimizer of its parameters, and what its loss is made of. It can be pickled."""

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    loss_fns: list[Any]
    loss_weights: list[float]
    features: list[str]
    labels: list[str]
    sample_weight: Optional[str]

    def loss(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """Returns the loss of a batch {column: tensor}."""
        outputs = as_list(self.model(**{name: as_floats(name, batch[name]) for name in self.features}))
        labels = shaped_labels([as_floats(name, batch[name]) for name in self.labels], outputs, None)
        weights = batch[self.sample_weight].float() if self.sample_weight else None
        return calculate_loss(outputs, labels, self.loss_weights, self.loss_fns, weights)

    def as_module(self, package: str) -> Any:
        """A LightningModule of this package, whose `model` is the model."""
        base = importlib.import_module(package).LightningModule
        plain = self

        class Module(base):  # type: ignore[misc,valid-type]
            def __init__(self) -> None:
                super().__init__()
                self.model = plain.model

            def configure_optimizers(self) -> Any:
                return plain.optimizer

            def training_step(self, batch: Any, batch_idx: int) -> Any:
                loss = plain.loss(batch)
                self.log("train_loss", loss)
                return loss

            def validation_step(self, batch: Any, batch_idx: int) -> None:
                self.log("val_loss", plain.loss(batch), sync_dist=True)

        return Module()
