"""Makes optimizers of any Keras distributed."""

from typing import Any, Optional

from horovod._keras import keras3
from horovod._keras.distributed import DistributedOptimizerMixin
from horovod._keras.packages import backend_of, is_keras3, package_of
from horovod._keras.settings import Settings
from horovod.common.class_names import class_of

_ACCUMULATION = "backward_passes_per_step={passes}: the optimizer has gradient_accumulation_steps={steps} already; use one of the two."
_EXCLUDED = "_exclude_from_weight_decay"  # what exclude_from_weight_decay() sets
_USED = "backward_passes_per_step > 1 needs an optimizer that has not been used yet."


def distributed(optimizer: Any, settings: Settings, local_layers: Any = None) -> Any:
    """Returns an optimizer like `optimizer` that reduces gradients over the ranks before it uses them; see DistributedOptimizer of
    horovod.keras.

    Its class has the name of the optimizer's class, so a model saved with it can be loaded without Horovod. The state of an
    optimizer that has been used is shared by the two.

    Args:
      optimizer: an optimizer of any Keras; or a LossScaleOptimizer, whose inner optimizer becomes distributed.
      settings: the checked settings.
      local_layers: a layer or layers whose trainable weights are local variables.

    Raises ValueError if `optimizer` is not an optimizer of Keras, or is distributed already, and TypeError as Keras does for an
    optimizer that can't be made from its configuration.
    """
    package = package_of(optimizer)
    if package is None or not hasattr(optimizer, "apply_gradients"):
        raise ValueError(f"hvd.DistributedOptimizer needs an optimizer of Keras, got {class_of(optimizer)}")
    if isinstance(optimizer, DistributedOptimizerMixin) or isinstance(_inner(optimizer), DistributedOptimizerMixin):
        raise ValueError("The optimizer is a hvd.DistributedOptimizer already.")
    if is_keras3(package):
        keras3.check_no_distribution()
        keras3.reduce_before_loss_scale(_loss_scale_class)
    inner = _inner(optimizer)
    if inner is not None:
        made = _made(inner, settings, package)
        result = _scaled(optimizer, made)
    else:
        result = made = _made(optimizer, settings, package)
    made._hvd.add_local_layers(_layers(local_layers))
    return result


def _inner(optimizer: Any) -> Optional[Any]:
    """Returns the optimizer in a LossScaleOptimizer; None if `optimizer` is not a LossScaleOptimizer."""
    is_scaling = any(base.__name__.endswith("LossScaleOptimizer") for base in type(optimizer).__mro__)
    return optimizer.inner_optimizer if is_scaling else None


def _made(optimizer: Any, settings: Settings, package: Any) -> Any:
    cls = _distributed_class(optimizer, settings, package)
    if _is_used(optimizer):
        if settings.backward_passes_per_step > 1 and is_keras3(package):
            raise ValueError(_USED)
        made: Any = cls.__new__(cls)
        vars(made).update(vars(optimizer))
        made._hvd_distribute()
        return made
    made = cls.from_config(_config_of(optimizer, settings))
    _keep_unconfigured(optimizer, made, settings, package)
    return made


def _keep_unconfigured(optimizer: Any, made: Any, settings: Settings, package: Any) -> None:
    """Copies to `made` the settings of the unused `optimizer` that its configuration leaves out."""
    excluded = {name: value for name, value in vars(optimizer).items() if name.startswith(_EXCLUDED)}
    excluded.pop(f"{_EXCLUDED}_cache", None)
    vars(made).update(excluded)
    if is_keras3(package):
        # With accumulation Keras counts passes there.
        made._iterations.assign(optimizer._iterations * settings.backward_passes_per_step)
    elif getattr(optimizer, "_iterations", None) is not None and _is_eager():
        made._iterations.assign(optimizer._iterations)


def _is_eager() -> bool:
    import tensorflow as tf

    return bool(tf.executing_eagerly())


def _distributed_class(optimizer: Any, settings: Settings, package: Any) -> Any:
    own = type(optimizer)
    attributes = {
        "__module__": _public_module(own, package),
        "_hvd_settings": settings,
        "_hvd_backend": backend_of(package),
        "_hvd_name": settings.name or f"Distributed{own.__name__}",
    }
    return type(own.__name__, (_mixin_of(optimizer, package), own), attributes)


def _mixin_of(optimizer: Any, package: Any) -> type:
    if is_keras3(package):
        return keras3.Keras3Optimizer
    from horovod._keras import keras2

    return keras2.NewOptimizer if hasattr(optimizer, "aggregate_gradients") else keras2.LegacyOptimizer


def _loss_scale_class(own: type) -> type:
    import keras

    return type(own.__name__, (keras3.LossScale, own), {"__module__": _public_module(own, keras)})


def _public_module(own: type, package: Any) -> str:
    """Returns the public module of the class, which Keras writes into files that it saves."""
    optimizers = package.optimizers
    if getattr(optimizers, own.__name__, None) is own:
        return f"{package.__name__}.optimizers"
    if getattr(getattr(optimizers, "legacy", None), own.__name__, None) is own:
        return f"{package.__name__}.optimizers.legacy"
    return own.__module__


def _is_used(optimizer: Any) -> bool:
    """Returns whether the optimizer has state that is not in its configuration."""
    weights = getattr(optimizer, "_weights", None)  # of a legacy optimizer
    return bool(getattr(optimizer, "built", False) or getattr(optimizer, "_built", False) or weights)


def _config_of(optimizer: Any, settings: Settings) -> dict[str, Any]:
    config: dict[str, Any] = optimizer.get_config()
    legacy = getattr(optimizer, "_hyper", {}).get("learning_rate")
    rate = getattr(optimizer, "_learning_rate", legacy)
    if callable(rate):
        config["learning_rate"] = rate  # a schedule need not be one that Keras can find by its name
    passes = settings.backward_passes_per_step
    if passes > 1 and "gradient_accumulation_steps" in config:
        if config["gradient_accumulation_steps"]:
            raise ValueError(_ACCUMULATION.format(passes=passes, steps=config["gradient_accumulation_steps"]))
        config["gradient_accumulation_steps"] = passes
    return config


def _scaled(scaling: Any, made: Any) -> Any:
    """Returns a LossScaleOptimizer like `scaling` around `made`."""
    if not is_keras3(package_of(scaling)):
        return _scaled_in_keras2(scaling, made)
    config = scaling.get_config()
    del config["inner_optimizer"]
    result = type(scaling)(made, **config)
    if _is_used(scaling):
        vars(result).update({name: value for name, value in vars(scaling).items() if name != "inner_optimizer"})
    return result


def _scaled_in_keras2(scaling: Any, made: Any) -> Any:
    cls: Any = type(scaling)
    if _is_used(made):  # it shares its state with the original, and in that the scale has its place already
        result = cls.__new__(cls)
        vars(result).update(vars(scaling), _optimizer=made, _trackable=made)
        return result
    made._is_wrapped_by_loss_scale_optimizer = False  # it was the one around the original's
    config = scaling.get_config()
    del config["inner_optimizer"]
    result = cls(made, **config)
    if scaling.dynamic:
        result._loss_scale.current_loss_scale.assign(scaling.loss_scale)
        result._loss_scale.counter.assign(scaling.dynamic_counter)
    return result


def _layers(value: Any) -> list[Any]:
    layers = [] if value is None else [value] if _is_layer(value) else list(value)
    if not all(_is_layer(layer) for layer in layers):
        raise ValueError("local_layers must hold Keras layers only")
    return layers


def _is_layer(value: Any) -> bool:
    return package_of(value) is not None and any(base.__name__ == "Layer" for base in type(value).__mro__)
