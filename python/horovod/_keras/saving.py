"""Loading of a model together with a distributed optimizer."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Optional

from horovod._keras.distributed import DistributedOptimizerMixin
from horovod._keras.optimizer import distributed
from horovod._keras.packages import is_keras3, package_behind
from horovod._keras.settings import Settings

_NO_LEGACY = "legacy_opts=True: Keras 3 has no legacy optimizers; TF_USE_LEGACY_KERAS=1 and tf-keras have them."
_AVERAGES = (
    "hvd.load_model: the optimizer has gradient_accumulation_steps={steps}: as Keras does, it averages the gradients of "
    "so many steps. If it was saved with backward_passes_per_step, which sums them up, multiply its learning rate by {steps}."
)


def load_model(
    keras: Any,
    filepath: Any,
    custom_optimizers: Optional[Iterable[type]],
    custom_objects: Optional[Mapping[str, Any]],
    settings: Settings,
    legacy_opts: bool,
) -> Any:
    """Returns the model in that file, compiled with a distributed optimizer that has the state of the saved optimizer."""
    if legacy_opts and is_keras3(package_behind(keras)):
        raise ValueError(_NO_LEGACY)
    objects: dict[str, Any] = {cls.__name__: cls for cls in custom_optimizers or ()}
    objects.update(custom_objects or {})
    model = keras.models.load_model(filepath, custom_objects=objects)
    optimizer = getattr(model, "optimizer", None)
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    if optimizer is not None and not isinstance(inner, DistributedOptimizerMixin):
        model.optimizer = distributed(optimizer, settings)
        steps = getattr(inner, "gradient_accumulation_steps", None)
        if steps:
            warnings.warn(_AVERAGES.format(steps=steps), stacklevel=3)
    return model
