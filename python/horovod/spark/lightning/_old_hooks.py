"""Hooks of modules and callbacks that Lightning 2 no longer has, for programs that were written for Lightning 1."""

from typing import Any

_STAGES = ("training", "validation")


def with_old_hooks(module: Any) -> Any:
    """The module, with `training_epoch_end` and `validation_epoch_end` called as Lightning 1 did, if it has them."""
    cls = type(module)
    hidden: dict[str, Any] = {}
    for stage in _STAGES:
        hook = getattr(cls, f"{stage}_epoch_end", None)
        if callable(hook):
            hidden.update(_collecting(cls, stage, hook))
            hidden[f"{stage}_epoch_end"] = None  # Lightning 2 refuses modules that have one
    if hidden:
        module.__class__ = type(cls.__name__, (cls,), {**hidden, "__module__": cls.__module__})
    return module


def _collecting(cls: Any, stage: str, hook: Any) -> dict[str, Any]:
    """A step that notes what it returns, and the end of an epoch that gives that to the hook."""
    step_name, end_name = f"{stage}_step", f"on_{'train' if stage == 'training' else stage}_epoch_end"
    outputs: list[Any] = []

    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        output = getattr(cls, step_name)(self, *args, **kwargs)
        if output is not None:
            outputs.append(output)
        return output

    def epoch_end(self: Any) -> None:
        hook(self, list(outputs))
        outputs.clear()
        getattr(cls, end_name)(self)

    return {step_name: step, end_name: epoch_end}


def callback_for_old_hooks(callbacks: list[Any], base: Any) -> list[Any]:
    """A callback that calls `on_epoch_end` of those that have it, at the end of each epoch of training and of validation; none
    if there are none. `base` is Lightning's Callback."""
    old = [
        callback for callback in callbacks if hasattr(callback, "on_epoch_end") and not hasattr(base, "on_epoch_end")
    ]

    class EpochEnds(base):  # type: ignore[misc]
        def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
            for callback in old:
                callback.on_epoch_end(trainer, module)

        on_validation_epoch_end = on_train_epoch_end

    return [EpochEnds()] if old else []
